#!/usr/bin/env bash
# Builds and runs tests under the address and undefined-behavior sanitizers, and those in which threads meet under the
# thread sanitizer.
#   scripts/asan_and_tsan.sh [CTEST OPTIONS]        the modules of the exchange; what reads files is fuzzed (scripts/fuzz.sh)
#   scripts/asan_and_tsan.sh build                  builds these only
#   scripts/asan_and_tsan.sh all [CTEST OPTIONS]    all unit tests under the first two, with all checks
set -euo pipefail
cd "$(dirname "$0")/.."
threads=(mixing_kernels_test exchange_test membership_test worker_test soak_test)
memory=("${threads[@]}" codec_test core_test observe_test topology_test worker_parts_test)
any_of() { # ctest's pattern for these names, and for their parts
  local IFS='|'
  echo "^($*)(_[a-z]+)?$"
}
memory_tests=(-R "$(any_of "${memory[@]}")")
# The address sanitizer finds these too, at less cost for the compiler.
left_out="null,object-size,vptr"
export FAST_FEW_WORKER_COUNTS=1 # other counts run without sanitizers
action=${1:-}
[[ $action != all && $action != build ]] || shift
if [[ $action == all ]]; then
  memory=(unit_tests) memory_tests=(-L unit) left_out=""
  unset FAST_FEW_WORKER_COUNTS
fi

scripts/setup.sh test
export FAST_SANITIZE_NOT=$left_out
scripts/build.sh asan "${memory[@]}"
scripts/build.sh tsan "${threads[@]}"
[[ $action != build ]] || exit 0
ctest --preset asan "${memory_tests[@]}" "$@"
ctest --preset tsan -R "$(any_of "${threads[@]}")" "$@"
