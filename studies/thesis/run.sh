#!/usr/bin/env bash
# The study of the thesis:  studies/thesis/run.sh [--small|--rounds] [BIN] [FOLDER]     (build/release/bin, build/thesis)
# Measures rounds of paced workers: minutes, best on an idle machine. Then it trains LeNet-5 on Fashion-MNIST on rings, and on
# its color images on grids, by seven ways to exchange. FOLDER gets the runs, table.md and the pictures. Finished runs are not
# repeated. SAMPLES: for training (4000). --rounds: rounds alone. --small: color images alone, one seed, few samples, two workers.
# Needs NumPy and matplotlib (python3-numpy, python3-matplotlib).
set -euo pipefail
cd "$(dirname "$0")/../.."
only=
[[ ${1:-} != --* ]] || { only=$1 && shift; }
[[ $only =~ ^(|--small|--rounds)$ ]] || { echo "thesis: there is no $only; --small and --rounds are the options" >&2; exit 1; }
bin=$(readlink -f "${1:-build/release/bin}")
folder=${2:-build/thesis}
sets="gray color" seeds="1 2 3" workers="2 4 8" samples=${SAMPLES:-4000} tests=2000 epochs=3 rounds=25 repeats=3 rates="0.03 0.1"
[[ $only != --small ]] || { sets=color seeds=1 workers=2 samples=640 tests=500 epochs=1 rounds=5 repeats=1 rates="0.1"; }
mkdir -p "$folder/runs" "$folder/rounds"
[[ $only != --rounds ]] || seeds=
[[ -z $seeds || -s $folder/data/color/test_batch.bin ]] || /usr/bin/python3 studies/colored.py "$folder/data" "$samples" $tests
declare -A topology=([gray]=ring [color]=torus2d)
batch=64 # of all workers together

# once FILE COMMAND...: runs the command, which writes FILE.new, unless FILE is there.
once() {
  local file=$1
  shift
  [[ ! -s $file ]] || return 0
  echo "$(basename "$file" .json)"
  "$@" </dev/null >"$file.log" 2>&1 || { tail -n 1 "$file.log" >&2 && return 1; }
  mv "$file.new" "$file" && rm "$file.log"
}
# Rounds of 40 ms with the weights of LeNet-5: what remains is the cost of the exchange.
declare -A method=([alone]="--method none" [ring]="--topology ring" [asynchronous]="--topology ring --staleness inf"
  [all-reduce]="--method allreduce" [server]="--method server" [server_async]="--method server_async")
if [[ -x $bin/bench_scaling ]]; then
  for repeat in $(seq $repeats); do
    for n in 1 $workers; do
      for name in "${!method[@]}"; do
        file=$folder/rounds/$n.$name.$repeat.json
        once "$file" mpiexec -n "$n" "$bin/bench_scaling" ${method[$name]} --mb 0.247 --step-ms 40 --rounds $rounds --json "$file.new"
      done
    done
  done
else
  echo "thesis: no $bin/bench_scaling (scripts/build.sh release bench_scaling): no rounds"
fi

of_run() { echo "--data $folder/data/$1 --epochs $epochs --batch-size $((batch / $2)) --seed $3 --momentum 0"; }
# train SET WORKERS SEED NAME OPTIONS...: threads of fast-train.
train() {
  local file=$folder/runs/$1.$2.$4.$3.json
  once "$file" "$bin/fast-train" --exchange local --workers "$2" --quiet --summary-json "$file.new" $(of_run "$@") "${@:5}"
}
# serve SET WORKERS SEED METHOD: ranks and a parameter server, of the benchmarks.
serve() {
  local file=$folder/runs/$1.$2.$4.$3.json
  [[ -x $bin/bench_training ]] || return 0
  once "$file" mpiexec -n "$2" "$bin/bench_training" --method "$4" --json "$file.new" --lr 0.1 $(of_run "$@")
}
[[ -x $bin/bench_training ]] || echo "thesis: no $bin/bench_training (scripts/build.sh release bench_training): no parameter server"
for seed in $seeds; do
  for set in $sets; do
    train $set 1 "$seed" one --lr 0.1
    for n in $workers; do
      train $set "$n" "$seed" all-reduce --lr 0.1 --algorithm allreduce
      near=(--topology "${topology[$set]}")
      for rate in $rates; do
        train $set "$n" "$seed" "gradients-$rate" "${near[@]}" --algorithm gradient_exchange --lr "$rate"
      done
      train $set "$n" "$seed" awc "${near[@]}" --lr 0.1 --algorithm awc
      train $set "$n" "$seed" atc "${near[@]}" --lr 0.1 --algorithm atc
      train $set "$n" "$seed" asynchronous "${near[@]}" --lr 0.1 --algorithm awc --staleness inf
      serve $set "$n" "$seed" server
      serve $set "$n" "$seed" server_async
    done
  done
done

/usr/bin/python3 studies/thesis/table.py "$folder"
