#!/usr/bin/env bash
# SIGTERM to one rank of four on two hosts: all save in one round.   stop_test.sh FAST_TRAIN. 77: cannot be done here.
set -uo pipefail
train=$1
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
"$hosts" up 2
source "$(dirname "$0")/../support/expect.sh"

terminate_one() { kill -TERM "$(pgrep -f "^$train .*$directory" | tail -n 1)"; }
for staleness in 0 inf; do
  out=$directory/$staleness
  expect_on_the_way "staleness $staleness" "to be resumed" "$out/metrics/0.jsonl" terminate_one -- \
    "$hosts" run 2 -r 2 "$train" --samples 2000 --model mlp --batch-size 20 --epochs 3000 --step-ms 10 --quiet \
    --staleness "$staleness" --out "$out" --checkpoint-every 1000000
  rounds=$(cat "$out"/checkpoints/round-*/worker-*.safetensors | grep -ao '"fast.round":"[0-9]*"')
  [[ $(wc -l <<<"$rounds") -eq 4 ]] || report_failure "staleness $staleness: not all have saved: $rounds"
  [[ $staleness == inf || $(sort -u <<<"$rounds" | wc -l) -eq 1 ]] || report_failure "different rounds: $rounds"
done
echo "$failures failures"
[[ $failures -eq 0 ]]
