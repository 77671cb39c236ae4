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

train() { # NAME SEED OPTIONS...
  local out=$folder/runs/$1-$2 seed=$2
  shift 2
  [[ ! -s $out/mean-model.safetensors ]] || return 0
  "$bin/fast-train" --exchange local --data "$folder/storms.npz" --model $study/storms.toml --loss mse --optimizer adamw --weight-decay 0.1 \
    --epochs $epochs --lr-schedule cosine --lr 0.001 --seed "$seed" --quiet --out "$out" --overwrite "$@" >"$folder/log" || { tail -n 1 "$folder/log" && return 1; }
}
models=()
for seed in $seeds; do
  train one $seed --workers 1 --batch-size 64
  train four $seed --workers 4 --batch-size 16 --topology ring
  train asynchronous $seed --workers 4 --batch-size 16 --topology ring --staleness inf
  models+=("1 worker=$folder/runs/one-$seed/mean-model.safetensors"
    "4 workers, synchronous=$folder/runs/four-$seed/mean-model.safetensors"
    "4 workers, staleness inf=$folder/runs/asynchronous-$seed/mean-model.safetensors")
done
/usr/bin/python3 $study/evaluate.py "$folder" "${models[@]}"
