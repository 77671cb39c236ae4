#!/usr/bin/env bash
# Sets up, builds and trains LeNet-5 on Fashion-MNIST with four workers on a torus. Options go to fast-train:
#   scripts/train.sh --epochs 2            WORKERS=9 scripts/train.sh --topology ring
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release fast-train
case " $* " in
*" --backend torch "* | *" --backend=torch "*) scripts/build.sh release fast-train-torch ;;
esac
program=build/release/bin/fast-train
case " $* " in
*" --exchange local "* | *" --exchange=local "*) exec "$program" --workers "${WORKERS:-4}" "$@" ;;
*) exec mpiexec -n "${WORKERS:-4}" "$program" "$@" ;;
esac
