#!/usr/bin/env bash
# fast-train --backend torch beside PyTorch's DistributedDataParallel over gloo: LeNet-5, Fashion-MNIST, one thread a rank,
# each with its own control without exchange, in turn in one run. Wants a quiet machine, python3-torch and python3-numpy.
#   bench/peers.sh [--repeats N] [--steps N] [--ranks "2 4"] [--json FILE]
# Defaults: 7 repeats, 200 steps, 2 and 4 ranks. PROGRAM is the fast-train to run, by default build/release/bin/fast-train.
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=7 steps=200 ranks="2 4" json=
while (($#)); do
  case $1 in
  --repeats | --steps | --ranks | --json) declare "${1#--}=$2" && shift 2 ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" && exit 2 ;;
  esac
done
program=${PROGRAM:-build/release/bin/fast-train}
[[ -x $program ]] || { echo "$program is missing; run scripts/build.sh" >&2 && exit 1; }
/usr/bin/python3 -c 'import torch, numpy' || { echo "run: apt-get install python3-torch python3-numpy" >&2 && exit 1; }
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

# ours NAME RANKS REPEAT OPTION...
ours() {
  mpiexec -n "$2" "$program" --quiet --epochs 1 --closing-rounds 0 --lr-schedule constant --warmup 0 --samples $(($2 * steps * 64)) \
    --summary-json "$runs/$1-$2-$3.json" "${@:4}" >/dev/null 2>&1
}

for repeat in $(seq "$repeats"); do
  for n in $ranks; do
    /usr/bin/python3 bench/peers/ddp_gloo.py --ranks "$n" --steps "$steps" --json "$runs/ddp-$n-$repeat.json" >/dev/null
    ours torch-ring "$n" "$repeat" --backend torch --topology ring
    /usr/bin/python3 bench/peers/ddp_gloo.py --ranks "$n" --steps "$steps" --alone --json "$runs/ddp_alone-$n-$repeat.json" >/dev/null
    ours torch_alone "$n" "$repeat" --backend torch --algorithm none
    ours torch_inf "$n" "$repeat" --backend torch --topology ring --staleness inf
    ours torch_allreduce "$n" "$repeat" --backend torch --exchange allreduce
    ours nn-ring "$n" "$repeat" --backend nn --topology ring
    echo "repeat $repeat of $repeats, $n ranks" >&2
  done
done
/usr/bin/python3 bench/peers/table.py "$runs" "$json"
