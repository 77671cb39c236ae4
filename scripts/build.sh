#!/usr/bin/env bash
# Sets up, configures and builds one preset:  scripts/build.sh [PRESET] [TARGET...]   (release, all)
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} # another folder's checkout has the same objects
preset=${1:-release}
shift || true
scripts/setup.sh
cmake --preset "$preset" -Wno-dev >"/tmp/fast-configure-$$.log" 2>&1 || { cat "/tmp/fast-configure-$$.log"; rm -f "/tmp/fast-configure-$$.log"; exit 1; }
rm -f "/tmp/fast-configure-$$.log"
cmake --build --preset "$preset" ${1:+--target "$@"}
