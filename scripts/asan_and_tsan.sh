#!/usr/bin/env bash
# Builds and runs tests under sanitizers: all unit tests under the address and undefined-behavior sanitizers, those in which
# threads meet under the thread sanitizer. Arguments go to ctest, as in:  scripts/asan_and_tsan.sh --repeat until-pass:2
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
scripts/build.sh asan unit_tests
ctest --preset asan -L unit "$@"
scripts/build.sh tsan mixing_kernels_test exchange_test worker_test soak_test
ctest --preset tsan -R '^(mixing_kernels_test|exchange_test|worker_test|soak_test)$' "$@"
