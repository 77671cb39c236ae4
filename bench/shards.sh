#!/usr/bin/env bash
# How much memory a worker takes that trains on shards of 4 GB, and whether it resumes bit for bit:
#   bench/shards.sh [MEGABYTES]
# Needs three times as much disk, and twice as much memory while the shards are written.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-build/release/bin}
exec python3 tests/train/shards_test.py "$bin/fast-train" "$bin/fast-data" mpiexec "${1:-4000}"
