#!/usr/bin/env bash
# The study of consistency and faults:  studies/consistency/run.sh [--small] [BIN] [FOLDER]     (build/release/bin, build/consistency)
# A run that keeps every version of its model loses a worker by kill -9, or all of them, and goes on with as many, fewer
# or more workers. Every version is then loaded and evaluated. FOLDER gets the runs, table.md and the pictures.
# Finished runs are not repeated. SAMPLES (4992) and SEEDS (1 2 3) change their size. --small: one seed, few samples. Needs NumPy and matplotlib.
set -euo pipefail
cd "$(dirname "$0")/../.."
small=
[[ ${1:-} != --small ]] || { small=yes && shift; }
bin=$(readlink -f "${1:-build/release/bin}")
folder=${2:-build/consistency}
seeds=${SEEDS:-1 2 3} workers=4 samples=${SAMPLES:-4992} epochs=4 every=39 step_ms=20 others="2 4 8"
[[ -z $small ]] || { seeds=1 workers=2 samples=1280 epochs=4 every=10 step_ms=60 others="1"; }
batch=128 # of all workers together
kill_round=$((samples / batch * epochs / 2 / every * every)) # the version after which a run is disturbed
mkdir -p "$folder"

# begin OUT WORKERS SEED OPTIONS...: starts a run beside this script, whose process is then $job.
begin() {
  local out=$1 n=$2 seed=$3 fast_run=()
  shift 3
  [[ ${FASTRUN_OPTIONS:-} ]] && read -ra fast_run <<<"$FASTRUN_OPTIONS"
  "$bin/fastrun" -n "$n" "${fast_run[@]}" "$bin/fast-train" --model mlp --topology ring --samples $samples --epochs $epochs \
    --batch-size $((batch / n)) --seed "$seed" --step-ms $step_ms --checkpoint-every $every --keep 1000 --closing-rounds 10 \
    --quiet --out "$out" --summary-json "$out.summary" "$@" </dev/null >>"$out.log" 2>&1 &
  job=$!
}
# descendants PID: the process and all that it has started.
descendants() {
  local child
  echo "$1"
  for child in $(pgrep -P "$1"); do descendants "$child"; done
}
# ranks: processes of the workers of $job.
ranks() {
  local one
  for one in $(descendants "$job"); do
    [[ $(cat "/proc/$one/comm" 2>/dev/null) != fast-train ]] || echo "$one"
  done
}
# await_rank RANK: until it has started; its process is then $started.
await_rank() {
  local one
  started=
  while [[ -z $started ]]; do
    kill -0 $job 2>/dev/null || { echo "consistency: the run has not started" >&2 && exit 1; }
    for one in $(ranks); do
      [[ $(tr '\0' '\n' 2>/dev/null <"/proc/$one/environ" | sed -n 's/^FASTRUN_RANK=//p') != "$1" ]] || started=$one
    done
  done
}
# await_version OUT: until the run has written version $kill_round, and some rounds more.
await_version() {
  local file waited=0
  file=$1/checkpoints/$(printf 'round-%012d' $kill_round)/manifest.json
  while [[ ! -s $file ]]; do
    sleep 0.05
    kill -0 $job 2>/dev/null && ((++waited < 4000)) || { echo "consistency: $1 has no version $kill_round" >&2 && exit 1; }
  done
  sleep 0.3
}
# result OUT BEGAN WORKERS: the run has ended well; keeps its wall time and the number of workers.
result() {
  local ended
  ended=$(date +%s.%N)
  [[ -s $1.summary && -s $1/mean-model.safetensors ]] || { cat "$1.log" >&2 && exit 1; }
  echo "{\"seconds\": $(awk "BEGIN { print $ended - $2 }"), \"workers\": $3, \"resumed\": $(
    sed -n 's/.*resuming from round \([0-9]*\) .*/\1/p' "$1.log" | grep . || echo null), \"load\": $(cut -d ' ' -f 1 /proc/loadavg), \"summary\": $(<"$1.summary")}" >"$1.json"
}
is_done() { [[ -s $1.json ]] && return 0; rm -rf "$1" "$1".*; echo "$(basename "$1")"; return 1; }

undisturbed() { # SEED
  local out=$folder/undisturbed-$1 began
  is_done "$out" && return
  began=$(date +%s.%N)
  begin "$out" $workers "$1"
  wait $job || true
  result "$out" "$began" $workers
}
one_killed() { # NAME SEED: the last worker dies; with FASTRUN_OPTIONS, a spare takes its place.
  local out=$folder/$1-$2 began
  is_done "$out" && return
  began=$(date +%s.%N)
  begin "$out" $workers "$2"
  await_rank $((workers - 1))
  await_version "$out"
  kill -9 "$started" || { echo "consistency: the run has ended too early" >&2 && exit 1; }
  wait $job || true
  result "$out" "$began" $workers
}
all_killed() { # SEED WORKERS: all workers die, and the run goes on with so many.
  local out=$folder/resumed-$2-$1 began all
  is_done "$out" && return
  began=$(date +%s.%N)
  begin "$out" $workers "$1"
  await_rank $((workers - 1))
  all=$(descendants $job)
  await_version "$out"
  kill -9 $all 2>/dev/null || true # some have ended with their parents
  wait $job 2>/dev/null || true
  cp "$out/metrics/0.jsonl" "$out.before"
  begin "$out" "$2" "$1" --resume "$out/checkpoints"
  wait $job || true
  result "$out" "$began" "$2"
}
for seed in $seeds; do
  undisturbed "$seed"
  one_killed lost "$seed"
  FASTRUN_OPTIONS="--spares 1" one_killed replaced "$seed"
  for n in $others; do all_killed "$seed" "$n"; done
done
/usr/bin/python3 studies/consistency/table.py "$bin/fast-model" "$folder" $((samples < 10000 ? samples : 10000)) # fast-train tests as many, too
