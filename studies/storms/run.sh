#!/usr/bin/env bash
# The study of storm tracks:  studies/storms/run.sh [PROGRAM] [FOLDER]     (build/release/bin/fast-train, build/storms)
# Needs R's dplyr (apt-get install r-cran-dplyr) and NumPy (python3-numpy). Finished runs are not repeated.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(readlink -f "${1:-build/release/bin/fast-train}")
folder=${2:-build/storms}
study=studies/storms
command -v Rscript >/dev/null || { echo "storms: skipped: no Rscript (apt-get install r-cran-dplyr)"; exit 77; }
mkdir -p "$folder"
Rscript -e 'write.csv(dplyr::storms, commandArgs(TRUE)[1], row.names = FALSE)' "$folder/storms.csv"
/usr/bin/python3 $study/prepare.py "$folder/storms.csv" "$folder"

train() { # NAME SEED OPTIONS...
  local out=$folder/runs/$1-$2 seed=$2
  shift 2
  [[ ! -s $out/mean-model.safetensors ]] || return 0
  "$program" --exchange local --data "$folder/storms.npz" --model $study/storms.toml --loss mse --optimizer adamw --weight-decay 0.1 --epochs 10 --lr-schedule cosine \
    --lr 0.001 --seed "$seed" --quiet --out "$out" --overwrite "$@" >"$folder/log" || { tail -n 1 "$folder/log" && return 1; }
}
models=()
for seed in 1 2 3; do
  train one $seed --workers 1 --batch-size 64
  train four $seed --workers 4 --batch-size 16 --topology ring
  train asynchronous $seed --workers 4 --batch-size 16 --topology ring --staleness inf
  models+=("1 worker=$folder/runs/one-$seed/mean-model.safetensors"
    "4 workers, synchronous=$folder/runs/four-$seed/mean-model.safetensors"
    "4 workers, staleness inf=$folder/runs/asynchronous-$seed/mean-model.safetensors")
done
/usr/bin/python3 $study/evaluate.py "$folder" "${models[@]}" | tee "$folder/table.md"
