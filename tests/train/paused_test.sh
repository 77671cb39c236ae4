#!/usr/bin/env bash
# Workers that are suspended while others have finished: all end with status 0, and one prints the results.
#   paused_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Ranks that write down their process numbers.
cat >"$directory/rank" <<'EOR'
#!/usr/bin/env bash
echo $$ >"$directory/pid$FASTRUN_RANK"
exec "$@"
EOR
chmod +x "$directory/rank"
export directory
command=("$fastrun" -n 3 "$directory/rank" "$train" --samples 300 --model mlp --batch-size 20 --epochs 20 --quiet --step-ms 10
  --staleness inf --suspect-after 1 --deadline 60 --out "$directory/out")

await() { for ((i = 0; i < 300; ++i)); do "$@" && return || sleep 0.1; done; }
made_epochs() { [[ $(grep -c '"kind":"epoch"' "$directory/out/metrics/$1.jsonl" 2>/dev/null)0 -ge ${2}0 ]]; }
signal_rank() { kill "-$1" "$(cat "$directory/pid$2")"; }

# paused TITLE WORKER SECONDS FIRST [OPTION...]: suspends WORKER for a time as soon as FIRST has made all its epochs.
paused() {
  local title=$1 worker=$2 seconds=$3 first=$4 started ended found
  shift 4
  rm -rf "$directory/out" "$directory"/pid*
  timeout -k 5 120 "${command[@]}" "$@" </dev/null >"$directory/output" 2>&1 &
  started=$!
  await made_epochs "$first" 20
  sleep 0.3
  signal_rank STOP "$worker"
  sleep "$seconds"
  signal_rank CONT "$worker"
  ended=$SECONDS
  wait $started
  found=$?
  [[ $found -eq 0 ]] || report_failure "$title: status $found"
  ((SECONDS - ended < 50)) || report_failure "$title: it ended $((SECONDS - ended)) s after the pause"
  ! grep -q "error:" "$directory/output" || report_failure "$title: an error"
  [[ $(grep -c "test accuracy, mean model" "$directory/output") -eq 1 ]] || report_failure "$title: not one table"
}

paused "a worker is back before all have finished" 2 1.5 0 --slow 1:6,2:6
! grep -q "lost workers" "$directory/output" || report_failure "a worker that is back counts as lost"
paused "the others end without the first worker, which then returns" 0 6 2 --slow 0:6
grep -q "lost workers  *0" "$directory/output" || report_failure "the table does not name the lost worker"
grep -q "rounds  *100" "$directory/output" || report_failure "the table is not that of a whole run"
# A worker takes 100 batches of 20. Two of the three made all rounds.
samples=$(awk '/^  samples per second/ { speed = $NF } /^  seconds/ { print int(speed * $NF) }' "$directory/output")
((samples > 3000)) || report_failure "the speed is that of $samples samples in all"
echo "$failures failures"
[[ $failures -eq 0 ]]
