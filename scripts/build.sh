#!/usr/bin/env bash
# Sets up, configures and builds one preset:  scripts/build.sh [PRESET] [TARGET...]   (release, all)
# The release preset has benchmarks where a target names them: bench for all, or bench_step.
# Tests are built where Catch2 is installed (scripts/setup.sh test). Prints what the configuration leaves out, and why.
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} # another folder's checkout has the same objects
preset=${1:-release}
shift || true
scripts/setup.sh
log=$(mktemp)
trap 'rm -f "$log"' EXIT
benchmarks=()
[[ " $*" != *" bench"* ]] || benchmarks=(-DFAST_BUILD_BENCH=ON)
cmake --preset "$preset" "${benchmarks[@]}" -Wno-dev >"$log" 2>&1 || { cat "$log" && exit 1; }
sed -n '/ left out: /s/^-- //p' "$log"
cmake --build --preset "$preset" ${1:+--target "$@"}
