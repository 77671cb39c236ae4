#!/usr/bin/env bash
# Three workers on two hosts become four.   grow_test.sh FASTRUN FAST_TRAIN joins|stopped. 77: cannot be done here.
set -uo pipefail
fastrun=$1 train=$2 part=$3
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
"$hosts" up 2
source "$(dirname "$0")/../support/expect.sh"
export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$hosts HYDRA_IFACE=fasthosts

# Ranks 0 and 1 are on one host, 2 and the spare on the other. Nobody waits the 20 s of --suspect-after.
job=("$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 3 --spares 1 --grow-at 0.5)
small=(--samples 600 --model mlp --batch-size 10 --suspect-after 20 --step-ms 5 --quiet)

joins() {
  local staleness title run distance
  for staleness in 0 2; do
    title="a spare joins at staleness $staleness"
    run=$directory/run-$staleness
    expect "$title" 0 "joined as asked to            3" -- "${job[@]}" "$train" "${small[@]}" --epochs 80 --staleness $staleness \
      --out "$run"
    grep -qE "lost workers|replaced|ended well|suspect|no sign of life|could not be read" "$directory/output" &&
      report_failure "$title: something went wrong"
    [[ $(tail -qn 1 "$run"/metrics/[0-3].jsonl | grep -o '"step":[0-9]*' | sort -u | wc -l) -eq 1 ]] ||
      report_failure "$title: workers end in different rounds"
    [[ -e $run/mean-model.safetensors ]] || report_failure "$title: no mean model"
    distance=$(grep "consensus distance" "$directory/output" | grep -o "[0-9.e+-]*$")
    # Workers that do not read each other end 10 and more apart; the learning rate ends at 0.
    [[ $staleness -gt 0 ]] || awk "BEGIN { exit !($distance < 0.01) }" || report_failure "$title: the workers end apart"
  done
}

# Worker 2 is far from the round in which the others have become more: all know that, and save for four.
stop_when_joined() {
  for ((i = 0; i < 300; ++i)); do
    grep -q "joins in round" "$directory/output" && break
    sleep 0.1
  done
  sleep 1
  kill -TERM "$(pgrep -P "$1")"
}
stopped() {
  local run=$directory/stopped
  expect_on_the_way "stopped while one worker is far behind" "to be resumed" "$run/metrics/0.jsonl" stop_when_joined -- \
    "${job[@]}" "$train" "${small[@]}" --epochs 4000 --staleness inf --slow 2:20 --out "$run" --checkpoint-every 1000000
  [[ $(find "$run/checkpoints" -name 'worker-*.safetensors' | wc -l) -eq 4 ]] || report_failure "stopped: not all have saved"
  grep -qE "waited|is gone|ended well" "$directory/output" && report_failure "stopped: workers have waited for others"
}
"$part"
echo "$failures failures"
[[ $failures -eq 0 ]]
