#!/usr/bin/env bash
# A worker on a GPU beside one on the CPU: both train, and the opening table says what on; one alone trains with all options of
# devices.  train_gpu_test.sh FAST_TRAIN MPIEXEC [OPTIONS]
# Status 77, with the reason, where there is no GPU.
set -euo pipefail
program=$1 mpiexec=$2
output=$(mktemp)
export XDG_CACHE_HOME=$(mktemp -d)
trap 'rm -rf "$output" "$XDG_CACHE_HOME"' EXIT
common=(--samples 4000 --epochs 2 --topology ring "${@:3}")
status=0
"$mpiexec" -n 1 "$program" "${common[@]}" --device cuda : -n 1 "$program" "${common[@]}" --device cpu >"$output" 2>&1 || status=$?
if grep -qF 'no GPU here' "$output"; then
  echo "skipped: $(cat "$output")"
  exit 77
fi
cat "$output"
[[ $status == 0 ]]
grep -qE 'devices +1 worker on cuda:0 \(.*\), 1 on cpu' "$output"
"$program" "${common[@]}" --quiet --device cuda --model lstm --precision bf16 --autotune --cuda-graph --augment --mixup 0.2 --prefetch 3 --loader-threads 2
"$program" "${common[@]}" --quiet --device cuda --deterministic
