#!/usr/bin/env bash
# What a run leaves to be looked at: options, event files, timelines.
#   look_test.sh FAST_TRAIN FAST_TRACE FASTRUN MPIEXEC PYTHON
set -uo pipefail
train=$1 trace=$2 fastrun=$3 mpiexec=$4 python=$5
here=$(dirname "$(readlink -f "$0")")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$here/../support/expect.sh"
small=(--samples 1200 --model mlp --epochs 2 --quiet)
run=$directory/run

expect "a run" 0 "test accuracy" -- \
  "$mpiexec" -n 3 "$train" "${small[@]}" --out "$run" --trace --tensorboard
[[ $(ls "$run"/traces/trace-?.0a.pftrace | wc -l) -eq 3 ]] || report_failure "three timelines"
expect "merge" 0 "3 workers" "ui.perfetto.dev" -- "$trace" merge "$run"
expect "summary" 0 "waited most for" "the slowest" -- "$trace" summary "$run"
rounds=$(awk '$1 == 0 { print $2; exit }' "$directory/output")
[[ $rounds -gt 10 ]] || report_failure "rounds of worker 0 in the summary: $rounds"
cp "$run/traces/merged.pftrace" "$directory/merged"

expect "the directory is taken" 2 "holds a run already" -- \
  "$mpiexec" -n 3 "$train" "${small[@]}" --out "$run" --trace
cmp -s "$run/traces/merged.pftrace" "$directory/merged" || report_failure "timelines are left alone"

grep -q '^# fast-train [0-9]' "$run/config.toml" || report_failure "config.toml says its version"
expect "the same again" 0 -- \
  "$mpiexec" -n 3 "$train" --config "$run/config.toml" --out "$directory/again"
cmp -s "$run/mean-model.safetensors" "$directory/again/mean-model.safetensors" ||
  report_failure "config.toml repeats the run bit for bit"

expect "no directory" 2 "--trace" "add --out" -- "$mpiexec" -n 2 "$train" "${small[@]}" --trace
expect "no timeline" 2 "--trace-rounds" "add --trace" -- \
  "$mpiexec" -n 2 "$train" "${small[@]}" --trace-rounds 1:2
expect "no port" 2 "--metrics-listen" "add --metrics-port" -- \
  "$mpiexec" -n 2 "$train" "${small[@]}" --metrics-listen 0.0.0.0
expect "no number" 2 "FIRST:LAST" -- \
  "$mpiexec" -n 2 "$train" "${small[@]}" --out "$directory/x" --trace --trace-rounds 5
expect "nothing to merge" 1 "train with --trace" -- "$trace" merge "$directory"

# A worker is killed: what it did up to then is in the timeline.
kill_one() { pkill -9 -f "^$train.*$directory/killed" -o; }
expect_on_the_way "a kill" "lost workers" "$directory/killed/metrics/1.jsonl" kill_one -- \
  "$fastrun" -n 3 "$train" --samples 6000 --model mlp --epochs 40 --step-ms 2 --quiet \
  --suspect-after 1 --out "$directory/killed" --trace
expect "merge after a kill" 0 "3 workers" -- "$trace" merge "$directory/killed"
expect "summary after a kill" 0 "suspected worker" -- "$trace" summary "$directory/killed"

# Decoded by others than us, where they are installed.
if "$python" -c 'import perfetto' 2>/dev/null; then
  expect "perfetto" 0 "nested" "flows" -- "$python" "$here/check_trace.py" "$run/traces/merged.pftrace" 3
else
  echo "not decoded by perfetto: no such Python package here"
fi
if "$python" -c 'import tensorboard' 2>/dev/null; then
  expect "tensorboard" 0 "read by EventAccumulator" -- "$python" "$here/check_events.py" "$run/tensorboard" 3
else
  echo "not read by TensorBoard: no such Python package here"
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
