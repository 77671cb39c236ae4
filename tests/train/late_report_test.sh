#!/usr/bin/env bash
# A worker of an all-reduce is killed while the one that is to report it makes a long step: one error is printed.
#   late_report_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

cat >"$directory/rank" <<'EOR'
#!/usr/bin/env bash
echo $$ >"$directory/pid$FASTRUN_RANK"
exec "$@"
EOR
chmod +x "$directory/rank"
export directory

# killed TITLE OPTION...: worker 0 dies in its first step. Worker 2 learns of it at once, worker 1 when it ends its step.
killed() {
  local title=$1 started found
  shift
  rm -rf "$directory/out" "$directory"/pid*
  timeout -k 5 60 "$fastrun" -n 3 "$directory/rank" "$train" --samples 300 --model mlp --batch-size 20 --epochs 20 --quiet \
    --step-ms 500 --out "$directory/out" "$@" </dev/null >"$directory/output" 2>&1 &
  started=$!
  for ((i = 0; i < 300; ++i)); do [[ -s $directory/out/metrics/2.jsonl ]] && break || sleep 0.1; done
  sleep 2
  kill -KILL "$(cat "$directory/pid0")"
  wait $started
  found=$?
  [[ $found -eq 1 ]] || report_failure "$title: status $found"
  [[ $(grep -c "error: all-reduce: worker 0.* is gone" "$directory/output") -eq 1 && $(grep -c "error: " "$directory/output") -eq 1 ]] ||
    report_failure "$title: not one error"
}

killed "the reporter comes late" --exchange allreduce --slow 0:16,1:16
killed "the reporter does not come in time" --exchange allreduce --slow 0:16,1:50
killed "a rule that averages over all" --algorithm allreduce --slow 0:16,1:16
echo "$failures failures"
[[ $failures -eq 0 ]]
