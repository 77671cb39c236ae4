#!/usr/bin/env bash
# Does decentralized training end where all-reduce ends? Trains LeNet-5, and with 16 workers an LSTM and a language model, a
# run a row and seed, and writes docs/reference/convergence.md with its plots. Wants python3-matplotlib and dict-gcide, a quiet
# machine for the rows with a slow worker, and two hours of two cores.
#   bench/convergence.sh [--seeds N] [--epochs N] [--samples N] [--runs DIRECTORY] [--docs DIRECTORY]
# Defaults: 3 seeds (10 with 16 workers), 10 epochs, all samples, build/convergence (runs of the same row found
# there are not repeated), docs.
# PROGRAM is the fast-train to run, by default build/release/bin/fast-train.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds="" usual=3 workers=8 epochs=10 samples=0 runs=build/convergence docs=docs
while (($#)); do
  case $1 in
  --seeds | --epochs | --samples | --runs | --docs) declare "${1#--}=$2" && shift 2 ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 2 ;;
  esac
done
program=${PROGRAM:-build/release/bin/fast-train}
[[ -x $program ]] || { echo "$program is missing; run scripts/build.sh" >&2 && exit 1; }
/usr/bin/python3 -c 'import matplotlib' || { echo "run: apt-get install python3-matplotlib" >&2 && exit 1; }

# row NAME OPTION...: one run a seed, in $runs/NAME-SEED.
row() {
  local name=$1 seed directory
  shift
  for seed in $(seq "${seeds:-$usual}"); do
    directory=$runs/$name-$seed
    mkdir -p "$directory"
    [[ ! -s $directory/summary.json || $(<"$directory/options") != "$*" ]] || continue
    echo "$name, seed $seed"
    rm -f "$directory/summary.json"
    echo "$*" >"$directory/options"
    "$program" --exchange local --workers "$workers" --quiet --samples "$samples" --epochs "$epochs" --seed "$seed" \
      --out "$directory" --overwrite --summary-json "$directory/summary.tmp" "$@" >/dev/null
    mv "$directory/summary.tmp" "$directory/summary.json" # whole or not there
  done
}

started=$SECONDS
row even-allreduce --algorithm allreduce
row even-ring --topology ring
row even-torus --topology torus2d
row even-one-peer --topology one_peer_exponential
row even-choco --topology ring --algorithm choco
row even-event --topology ring --algorithm event_triggered --algorithm-option horizon=2.1
# The rate at which all-reduce ends best.
row high-allreduce --lr 0.1 --algorithm allreduce
row high-ring --lr 0.1 --topology ring
row high-choco --lr 0.1 --topology ring --algorithm choco

# Each at the best of a few rates.
workers=16 usual=10
row sixteen-allreduce --lr 0.1 --algorithm allreduce
row sixteen-gut-torus --lr 0.043 --topology torus2d --algorithm gut
row sixteen-gut-ring --lr 0.043 --topology ring --algorithm gut
row sixteen-atc-torus --lr 0.1 --topology torus2d --algorithm atc --lazy-weights
averaged=(--algorithm averaged_momentum --algorithm-option atc=true)
row sixteen-averaged-momentum-before --lr 0.1 --topology one_peer_exponential --algorithm averaged_momentum
row sixteen-averaged-momentum-one-peer --lr 0.1 --topology one_peer_exponential "${averaged[@]}"
row sixteen-averaged-momentum-torus --lr 0.1 --topology torus2d "${averaged[@]}"
row sixteen-averaged-momentum-ring --lr 0.1 --topology ring "${averaged[@]}"
lstm=(--model lstm --lr 1.2 --warmup 2.5)
row lstm-allreduce "${lstm[@]}" --algorithm allreduce
row lstm-averaged-momentum-torus "${lstm[@]}" --topology torus2d "${averaged[@]}"
row lstm-averaged-momentum-ring "${lstm[@]}" --topology ring "${averaged[@]}"
row lstm-averaged-momentum-one-peer "${lstm[@]}" --topology one_peer_exponential "${averaged[@]}"
row lstm-averaged-momentum-base2 "${lstm[@]}" --topology base2 "${averaged[@]}"
usual=5
[[ -s $runs/text.npz ]] || /usr/bin/python3 bench/text.py "$runs/text.npz" --windows 25600 --steps 32
text=(--data "$runs/text.npz" --loss cross_entropy --model bench/text.toml --batch-size 8 --optimizer adam --epochs 16)
row text-allreduce "${text[@]}" --lr 0.04 --algorithm allreduce
text+=(--lr 0.08)
row text-awc-torus "${text[@]}" --topology torus2d
row text-awc-ring "${text[@]}" --topology ring
row text-awc-one-peer "${text[@]}" --topology one_peer_exponential
workers=8 usual=3

skewed=(--shards dirichlet:0.1 --lr 0.02)
row skewed-allreduce "${skewed[@]}" --algorithm allreduce
row skewed-relay-sum "${skewed[@]}" --topology grid1d --algorithm relay_sum
row skewed-a2cid2 "${skewed[@]}" --topology alternating_pairs --algorithm a2cid2
skewed+=(--topology ring)
row skewed-awc "${skewed[@]}"
row skewed-tracking "${skewed[@]}" --algorithm gradient_tracking
row skewed-d2 "${skewed[@]}" --algorithm d2
row skewed-edm "${skewed[@]}" --algorithm edm
row skewed-gut "${skewed[@]}" --algorithm gut
row skewed-quasi-global "${skewed[@]}" --algorithm quasi_global_momentum
row skewed-averaged-momentum "${skewed[@]}" --algorithm averaged_momentum
row skewed-decentlam "${skewed[@]}" --algorithm decentlam
row skewed-decentlam-long --shards dirichlet:0.1 --lr 0.047 --topology ring --algorithm decentlam
row skewed-apart "${skewed[@]}" --lr-schedule constant --closing-rounds 0
row skewed-closed "${skewed[@]}" --lr-schedule constant

# At the best of three rates: 0.02, 0.047 and 0.1, of gut 0.02, 0.03 and 0.043.
for workers in 8 16; do
  best=(--shards dirichlet:0.1 --lr 0.1)
  row "best$workers-allreduce" "${best[@]}" --algorithm allreduce
  ((workers == 8)) || best[3]=0.047
  row "best$workers-awc" "${best[@]}" --topology ring
  best[3]=0.043
  row "best$workers-gut" "${best[@]}" --topology ring --algorithm gut
done
row best16-gut-torus "${best[@]}" --topology torus2d --algorithm gut
workers=8

slow=(--epochs $(((epochs + 2) / 3)) --step-ms 20 --slow 3:4 --evaluate-every 13)
row slow-allreduce "${slow[@]}" --algorithm allreduce
row slow-awc "${slow[@]}" --topology ring --staleness inf

bench/convergence.py "$runs" "$docs"
echo "$((SECONDS - started)) s in all"
