#!/usr/bin/env bash
# The directory that a run writes, what it prints meanwhile, and the table of fastrun --watch.
#   run_directory_test.sh FAST_TRAIN FASTRUN MPIEXEC
set -uo pipefail
train=$1 fastrun=$2 mpiexec=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
cd "$directory" || exit 1
small=(--samples 1200 --model mlp --epochs 2)
count() { grep -c "$1" "$2" || true; }

# A name for each run; the tables say what is trained, once.
expect "a named run" 0 "run directory: runs/" "data       " "1200 samples to train on" "the 1200 test samples" \
  "mlp, 203530 parameters" "64 on each worker, 192 in all" "sgd, momentum 0.9" "epoch 2/2 | " "test accuracy" -- \
  "$mpiexec" -n 3 "$train" "${small[@]}" --run-name auto --progress lines
cp "$directory/output" named
[[ $(count '^  topology ' "$directory/output") -eq 1 ]] || report_failure "a named run: the tables repeat themselves"
[[ $(count 'run directory' "$directory/output") -eq 1 ]] || report_failure "a named run: the name is there more than once"
expect "another one" 0 "test accuracy" -- "$mpiexec" -n 3 "$train" "${small[@]}" --run-name auto --progress none
[[ $(count '^epoch' "$directory/output") -eq 0 ]] || report_failure "another one: there is progress"
names=(runs/*-mlp-torus2d-3*)
[[ ${#names[@]} -eq 2 && $(ls runs | wc -l) -eq 2 ]] || report_failure "two runs have made: $(ls runs)"
run=${names[0]}
for rank in 0 1 2; do
  [[ $(results "$run/metrics/$rank.jsonl") -eq 2 ]] || report_failure "metrics of rank $rank"
  for text in '"accuracy":0\.' '"gradient_norm":[0-9]' '"test_accuracy":0\.[0-9]*,"test_samples"'; do
    [[ $(grep '^{"kind":"epoch"' "$run/metrics/$rank.jsonl" | grep -c "$text") -eq 2 ]] || report_failure "rank $rank has no $text"
  done
  grep -q '^{"kind":"start".*"clock_offset":-*[0-9]' "$run/metrics/$rank.jsonl" || report_failure "rank $rank has no offset of its clock"
  grep -q '^{"kind":"end".*"state":"finished"' "$run/metrics/$rank.jsonl" || report_failure "rank $rank has no state at its end"
  [[ $(count " rank $rank info: epoch [12] ended in round" "$run/logs/$rank.log") -eq 2 ]] || report_failure "log of rank $rank"
done
# The last line of an epoch has what was measured after it.
for epoch in 1 2; do
  accuracy=$(grep '^{"kind":"epoch"' "$run/metrics/0.jsonl" | sed -n "${epoch}s/.*\"test_accuracy\":\([0-9.e-]*\).*/\1/p")
  text=$(LC_ALL=C awk "BEGIN { printf \"| test %.2f %% (worker 0's part) |\", 100 * $accuracy }")
  grep -F "epoch $epoch/2 | 6/6 |" named | grep -qF "$text" || report_failure "the line of epoch $epoch has no \"$text\": $(grep ^epoch named)"
done
[[ $(wc -l <"$run/metrics.jsonl") -eq $(cat "$run"/metrics/*.jsonl | wc -l) ]] || report_failure "not all metrics are merged"
grep -q "^out = \"$run\"" "$run/config.toml" || report_failure "config.toml names another directory"
expect "two names" 2 "leave one out" -- "$mpiexec" -n 2 "$train" "${small[@]}" --run-name auto --out x
expect "a name that is taken" 2 "holds a run already (metrics/0.jsonl)" -- \
  "$mpiexec" -n 2 "$train" "${small[@]}" --run-name "$(basename "$run")"
expect "a directory for logs that is a file" 1 "log: " "out/logs" -- \
  bash -c 'mkdir out && touch out/logs && exec "$@"' bash "$mpiexec" -n 2 "$train" "${small[@]}" --out out
expect "a level without a log" 2 "--log-level" "add --out" -- "$mpiexec" -n 2 "$train" "${small[@]}" --log-level debug
expect "a bar under mpiexec" 0 "] 18/18 | loss" -- "$mpiexec" -n 1 "$train" "${small[@]}" --progress bar
expect "lines under fastrun" 0 "epoch 2/2 | 18/18 | loss" -- "$fastrun" -n 1 "$train" "${small[@]}"

# A run that fails says so where it ends.
expect "a loss that is not finite" 1 "the loss of worker" -- \
  "$mpiexec" -n 2 "$train" "${small[@]}" --lr 1e30 --out failed
grep -q '^{"kind":"end".*"state":"failed"' failed/metrics/*.jsonl || report_failure "no line says that the run has failed"

# A full disk: a warning for metrics and one for the log of each rank, and training goes on.
mkdir -p full/metrics full/logs
for rank in 0 1; do ln -s /dev/full full/metrics/$rank.jsonl && ln -s /dev/full full/logs/$rank.log; done
expect "a full disk" 0 "test accuracy" "metrics/1.jsonl cannot be written" "logs/0.log cannot be written" -- \
  "$mpiexec" -n 2 "$train" "${small[@]}" --out full
[[ $(count 'cannot be written' "$directory/output") -eq 4 ]] || report_failure "a full disk: not four warnings"

# fastrun shows a stopped rank, without a terminal and on one.
cat >rank <<'EOF'
#!/usr/bin/env bash
echo $$ >"$directory/process$FASTRUN_RANK"
exec "$@"
EOF
chmod +x rank
export directory
watched=("$fastrun" -n 4 --watch "$directory/rank" "$train" --samples 2000 --model mlp --batch-size 20 --epochs 12 --step-ms 20)
stop_for_a_while() { # until the output says so
  local i
  for ((i = 0; i < 300; ++i)); do grep -q "4 of 4 ranks train, round [0-9]" "$directory/output" && break || sleep 0.1; done
  kill -STOP "$(cat "$directory/process2")"
  for ((i = 0; i < 300; ++i)); do grep -q "$1" "$directory/output" && break || sleep 0.1; done
  kill -CONT "$(cat "$directory/process2")"
}
stop_till_line() { stop_for_a_while "rank 2: stopped, in round"; }
stop_till_row() { stop_for_a_while "^ *2 .* stopped"; }
watch() { # TITLE ACTION COMMAND...
  local title=$1 action=$2 started
  shift 2
  : >"$directory/output" # or the action would read what the last command wrote
  timeout -k 5 100 "$@" </dev/null >>"$directory/output" 2>&1 9>&- &
  started=$!
  $action
  wait $started || report_failure "$title: status $?"
}
watch "a table in lines" stop_till_line "${watched[@]}"
for text in "fastrun: 4 of 4 ranks train, round " "fastrun:   rank 2: stopped, in round" "test accuracy"; do
  grep -qF -e "$text" "$directory/output" || report_failure "a table in lines: no \"$text\""
done
[[ $(count '^epoch' "$directory/output") -eq 0 ]] || report_failure "a table in lines: there is progress, too"
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  rm -f "$directory"/process*
  watch "a table on a terminal" stop_till_row script -qefc "stty cols 120 rows 30; $(printf '%q ' "${watched[@]}")" /dev/null
  for text in "samples/s   wait   age  state" " stopped" $'\e[6A' "ended"; do
    grep -qF -e "$text" "$directory/output" || report_failure "a table on a terminal: no \"$text\""
  done
  expect "a bar under fastrun on a terminal" 0 "] 18/18 | loss" -- \
    script -qec "stty cols 120 rows 30; $(printf '%q ' "$fastrun" -n 2 "$train" "${small[@]}" --batch-size 32)" /dev/null
else
  echo "skipped: tables on a terminal: there is no script(1) that makes one"
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
