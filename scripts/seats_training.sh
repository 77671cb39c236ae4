#!/usr/bin/env bash
# Training runs with spares whose workers die or return, compared with undisturbed runs:
#   scripts/seats_training.sh [--count 100] [--undisturbed 100] [--seed 1] [--from 0] [--table FILE] [--epochs 6] [--samples 6000]
# A row for each run; in the end the means, and what was missed. --from NUMBER --count 1 --undisturbed 2: run NUMBER again.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
scripts/build.sh release seats_training fastrun
exec build/release/bin/seats_training build/release/bin/fastrun "$@"
