#!/usr/bin/env bash
# Sets up, builds and runs all tests:  scripts/test.sh [CTEST OPTIONS]
#   PRESET=asan scripts/test.sh     another preset (release, debug, asan, tsan, ci)
#   scripts/test.sh -L unit         only the tests with that label
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${PRESET:-release}
scripts/setup.sh test
scripts/build.sh "$preset"
ctest --preset "$preset" "$@"
