#!/usr/bin/env bash
# Kills, stops and slows workers of many runs, by a seed:  scripts/chaos.sh [--count 1000] [--seed 1] [--from 0]
# A schedule that fails is told with its number:  scripts/chaos.sh --seed S --from NUMBER --count 1  has it again.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ " $* " == *" --count"* ]] || set -- --count 1000 "$@"
cmake --preset release -Wno-dev >/dev/null
cmake --build --preset release --target chaos fastrun
exec build/release/bin/chaos build/release/bin/fastrun "$@"
