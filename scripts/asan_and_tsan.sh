#!/usr/bin/env bash
# Builds and runs tests under the address and undefined-behavior sanitizers, then those in which threads meet under the
# thread sanitizer.
#   scripts/asan_and_tsan.sh [CTEST OPTIONS]        the modules of the exchange; what reads files is fuzzed (scripts/fuzz.sh)
#   scripts/asan_and_tsan.sh all [CTEST OPTIONS]    all unit tests under the first two
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
threads=(mixing_kernels_test exchange_test worker_test soak_test)
memory=("${threads[@]}" codec_test core_test observe_test topology_test worker_parts_test)
any_of() { # ctest's pattern for these names, and for their parts
  local IFS='|'
  echo "^($*)(_[a-z]+)?$"
}
if [[ ${1:-} == all ]]; then
  shift
  scripts/build.sh asan unit_tests
  ctest --preset asan -L unit "$@"
else
  scripts/build.sh asan "${memory[@]}"
  ctest --preset asan -R "$(any_of "${memory[@]}")" "$@"
fi
scripts/build.sh tsan "${threads[@]}"
ctest --preset tsan -R "$(any_of "${threads[@]}")" "$@"
