#!/usr/bin/env bash
# Trains for HOURS (0.2: twelve minutes) while workers are stopped, slowed down and killed, and fails when memory, file
# descriptors or threads of a process grow:  scripts/soak.sh HOURS [--seed S]
set -euo pipefail
cd "$(dirname "$0")/.."
hours=${1:?the hours to train for}
shift
scripts/setup.sh test
scripts/build.sh release fast-train fastrun
exec python3 tests/soak/soak.py build/release/bin/fastrun build/release/bin/fast-train \
  --seconds "$(python3 -c 'import sys; print(3600 * float(sys.argv[1]))' "$hours")" "$@"
