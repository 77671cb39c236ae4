#!/usr/bin/env bash
# Fails when a C++ file differs from what clang-format makes of it;  --fix  rewrites them.
set -euo pipefail
cd "$(dirname "$0")/.."
names=$(git ls-files '*.hpp' '*.cpp' '*.h' '*.c' '*.cu' '*.cuh')
mapfile -t files <<<"$names"
if [[ ${1:-} == --fix ]]; then
  clang-format -i "${files[@]}"
else
  clang-format --dry-run --Werror "${files[@]}"
fi
