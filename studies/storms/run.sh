#!/usr/bin/env bash
# The study of storm tracks:  studies/storms/run.sh [--small] [BIN] [FOLDER]     (build/release/bin, build/storms)
# FOLDER gets the runs, table.md and the picture. Finished runs are not repeated. --small: tracks that are made up, one seed,
# two epochs. Needs R's dplyr (apt-get install r-cran-dplyr; not for --small), NumPy and matplotlib (python3-numpy,
# python3-matplotlib).
set -euo pipefail
cd "$(dirname "$0")/../.."
small=
[[ ${1:-} != --small ]] || { small=yes && shift; }
bin=$(readlink -f "${1:-build/release/bin}")
folder=${2:-build/storms}
study=studies/storms
seeds="1 2 3" epochs=10
[[ -z $small ]] || { seeds=1 epochs=2; }
mkdir -p "$folder"
if [[ -n $small ]]; then
  /usr/bin/python3 $study/tracks.py "$folder/storms.csv"
else
  command -v Rscript >/dev/null || { echo "storms: skipped: no Rscript (apt-get install r-cran-dplyr)"; exit 77; }
  Rscript -e 'write.csv(dplyr::storms, commandArgs(TRUE)[1], row.names = FALSE)' "$folder/storms.csv"
fi
/usr/bin/python3 $study/prepare.py "$folder/storms.csv" "$folder"

models=()
# train TITLE NAME SEED COMMAND...: the command trains and writes the mean model to its --out.
train() {
  local out=$folder/runs/$2-$3
  models+=("$1=$out/mean-model.safetensors")
  [[ ! -s $out/mean-model.safetensors ]] || return 0
  "${@:4}" --data "$folder/storms.npz" --model $study/storms.toml --loss mse --optimizer adamw --weight-decay 0.1 \
    --epochs $epochs --lr 0.001 --seed "$3" --out "$out" </dev/null >"$folder/log" 2>&1 || { tail -n 1 "$folder/log" >&2 && return 1; }
}
threads=("$bin/fast-train" --exchange local --lr-schedule cosine --quiet --overwrite)
four=(--workers 4 --batch-size 16 --topology ring)
served=(mpiexec -n 4 "$bin/bench_training" --batch-size 16)
[[ -x $bin/bench_training ]] || echo "storms: no $bin/bench_training (scripts/build.sh release bench_training): no parameter server"
for seed in $seeds; do
  train "1 worker" one $seed "${threads[@]}" --workers 1 --batch-size 64
  train "4 workers, synchronous" four $seed "${threads[@]}" "${four[@]}"
  train "4 workers, staleness inf" asynchronous $seed "${threads[@]}" "${four[@]}" --staleness inf
  [[ -x $bin/bench_training ]] || continue
  train "parameter server, synchronous" server $seed "${served[@]}" --method server
  train "parameter server, asynchronous" server_async $seed "${served[@]}" --method server_async
done
/usr/bin/python3 $study/evaluate.py "$folder" "${models[@]}"
