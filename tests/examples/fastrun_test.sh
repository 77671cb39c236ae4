#!/usr/bin/env bash
# fastrun keeps the living going, tells of the dead and ends by its criterion.   fastrun_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failures=0

# expect TITLE STATUS TEXT... -- COMMAND...: ends with that status and prints all the texts.
expect() {
  local title=$1 status=$2 texts=() found
  shift 2
  while [[ $1 != -- ]]; do texts+=("$1") && shift; done
  shift
  timeout -k 5 60 "$@" </dev/null >"$directory/output" 2>&1
  found=$?
  [[ $found -eq $status ]] || { echo "FAILED: $title: status $found"; failures=$((failures + 1)); sed 's/^/  | /' "$directory/output"; }
  for text in "${texts[@]}"; do
    grep -qF -e "$text" "$directory/output" || { echo "FAILED: $title: no \"$text\""; failures=$((failures + 1)); sed 's/^/  | /' "$directory/output"; }
  done
}

small=(--samples 600 --model mlp --epochs 1 --quiet)
expect "all end well" 0 "rank 0" "rank 2" -- "$fastrun" -n 3 bash -c 'echo "rank $PMI_RANK"'
expect "one is killed" 0 "rank 1 (process" "signal 9" "rank 1 said: last words" "rank 2 survived" "2 of 3" -- \
  "$fastrun" -n 3 bash -c 'if [[ $PMI_RANK = 1 ]]; then echo "last words" >&2; kill -9 $$; fi; sleep 1; echo "rank $PMI_RANK survived"'
expect "too few end well" 1 "1 of 3 ranks ended well; 2 are required" -- "$fastrun" --min-workers 2 -n 3 bash -c 'exit $PMI_RANK'
expect "none ends well" 1 "0 of 2" -- "$fastrun" -n 2 false
expect "no such program" 1 "/no/such cannot be started" -- "$fastrun" -n 2 /no/such
expect "no program" 2 "no program given" -- "$fastrun" -n 2
expect "started by another" 1 "PMI_RANK" -- env PMI_RANK=0 "$fastrun" -n 2 true
expect "no mpiexec" 1 "install MPICH" -- "$fastrun" --mpiexec /no/mpiexec -n 2 true
expect "doctor" 0 "MPICH's hydra" "/dev/shm" "cores" -- "$fastrun" --doctor -n 1
expect "training" 0 "test accuracy" "workers                       3" -- "$fastrun" -n 3 "$train" "${small[@]}"
expect "bad input" 1 "error: --lr: -1" "0 of 2" -- "$fastrun" -n 2 "$train" "${small[@]}" --lr -1
expect "a rank that never begins" 1 "before training began" -- "$fastrun" --start-deadline 1 -n 2 \
  bash -c 'if [[ $PMI_RANK = 1 ]]; then kill -9 $$; fi; exec sleep 50'

# SIGTERM to fastrun: all save and end; then they go on.
run=("$train" --samples 4000 --model mlp --epochs 40 --step-ms 10 --quiet --out "$directory/run" --checkpoints "$directory/saved")
timeout -k 5 100 "$fastrun" -n 2 "${run[@]}" >"$directory/stopped" 2>&1 </dev/null &
started=$!
for ((i = 0; i < 300 && $(wc -l 2>/dev/null <"$directory/run/metrics-0.jsonl" || echo 0) < 1; ++i)); do sleep 0.1; done
kill -TERM "$(pgrep -P $started)"
wait $started || { echo "FAILED: pre-emption: status $?"; failures=$((failures + 1)); cat "$directory/stopped"; }
grep -q "stopped after" "$directory/stopped" || { echo "FAILED: not stopped"; failures=$((failures + 1)); cat "$directory/stopped"; }
expect "resume" 0 "test accuracy" "workers                       3" -- "$fastrun" -n 3 "$train" --samples 4000 --model mlp --epochs 5 --quiet --resume "$directory/saved"
# A rank is killed: its neighbors train on its samples from the next epoch on.
run=("$train" --samples 600 --model mlp --batch-size 10 --epochs 12 --step-ms 20 --suspect-after 1 --quiet --shards dirichlet:0.1 --take-over --out "$directory/skewed")
timeout -k 5 100 "$fastrun" -n 3 bash -c 'if [[ $PMI_RANK = 1 ]]; then echo $$ >"$0"; fi; exec "$@"' "$directory/victim" "${run[@]}" >"$directory/skewed.log" 2>&1 </dev/null &
started=$!
for ((i = 0; i < 300 && $(wc -l 2>/dev/null <"$directory/skewed/metrics-0.jsonl" || echo 0) < 1; ++i)); do sleep 0.1; done
kill -9 "$(cat "$directory/victim")"
wait $started || { echo "FAILED: taking over: status $?"; failures=$((failures + 1)); cat "$directory/skewed.log"; }
for text in "worker 0: trains on its 200 samples and on 100 of workers that are gone (1)" "worker 2: trains on its 200 samples and on 100 of workers that are gone (1)"; do
  grep -qF "$text" "$directory/skewed.log" || { echo "FAILED: no \"$text\""; failures=$((failures + 1)); cat "$directory/skewed.log"; }
done
echo "$failures failures"
[[ $failures -eq 0 ]]
