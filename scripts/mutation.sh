#!/usr/bin/env bash
# How many faults do the tests see? Changes one place of the code at a time, builds, and runs the tests that cover it:
#   scripts/mutation.sh [--count 30] [--seed N] [--only lib/codec] [--list]
# Prints one line a mutant: killed (a test failed), survived, or equivalent (the programs are the same). The end says how
# many there were, and the seed. Survivors are to be read: each is a missing test, or a change that does not matter.
# Fails if fewer than --at-least (.85) of those that change a program are killed. --list only prints the drawn changes.
# Works on a copy of the checkout in build/mutation.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD/build/mutation/source
python3 scripts/mutation/mutants.py "$source" --copy
if [[ " $* " != *" --list "* ]]; then
  scripts/setup.sh test
  export CCACHE_BASEDIR=$source
  cmake -S "$source" --preset dev -Wno-dev -DFAST_CUDA=OFF -DFAST_BUILD_BENCH=OFF -DFAST_WERROR=OFF \
    -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" >"$source.log" 2>&1 || { cat "$source.log" && exit 1; }
fi
exec python3 scripts/mutation/mutants.py "$source" "$@"
