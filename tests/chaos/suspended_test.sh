#!/usr/bin/env bash
# Jobs that are suspended as a whole, or that have a slow worker, train to their end, with limits that are shorter than
# the pause and than the run.   suspended_test.sh FAST_TRAIN MPIEXEC
set -uo pipefail
train=$1 mpiexec=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Tells its process, which becomes fast-train's. The slow one, of rank 1, comes last: process2.
cat >"$directory/rank" <<'EOS'
#!/usr/bin/env bash
echo $$ >"$directory/process$(((${PMI_RANK:-$OMPI_COMM_WORLD_RANK} + 1) % 3))"
exec "$@"
EOS
chmod +x "$directory/rank"
export directory

pause_s=8
suspend() {
  sleep 0.3 # into an epoch
  kill -STOP $(cat "$directory"/process?)
  sleep $pause_s
  for process in $(cat "$directory"/process?); do # one after the other, as a job scheduler does
    kill -CONT "$process"
    sleep 0.2
  done
}

# suspended TITLE OPTION...
suspended() {
  rm -rf "$directory"/process? "$directory/run"
  expect_on_the_way "$1" "test accuracy" "$directory/run/metrics/0.jsonl" suspend -- "$mpiexec" -n 3 "$directory/rank" \
    "$train" --samples 1000 --model mlp --epochs 2 --step-ms 30 --slow 1:10 --deadline 6 --out "$directory/run" "${@:2}"
  ! grep -E "no sign of life|lost" "$directory/output" || report_failure "$1: a worker was taken for dead"
}

suspended "a suspended all-reduce" --exchange allreduce --suspect-after 3
suspended "neighbors suspended for longer than makes a suspect" --suspect-after 3
suspended "neighbors suspended for longer than the deadline" --suspect-after 60
expect "a straggler" 0 "test accuracy" -- "$mpiexec" -n 2 "$train" --samples 2000 --model mlp --epochs 1 --quiet \
  --staleness inf --slow 1:10 --step-ms 30 --suspect-after 3 --deadline 6
echo "$failures failures"
[[ $failures -eq 0 ]]
