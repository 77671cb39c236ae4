#!/usr/bin/env bash
# fastrun --hosts on two hosts, with MPICH or Open MPI: four workers train; then one of them is killed, and the others finish.
#   fastrun_hosts_test.sh FASTRUN FAST_TRAIN        77: cannot be done here
set -uo pipefail
fastrun=$1 train=$2
source "$(dirname "$0")/../support/hosts.sh" any
command=("$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 4 --min-workers 3 "$train" --model mlp --samples 2000)

"$hosts" up 2
expect "four workers" 0 "4 on 2 hosts" "test accuracy, mean model" -- "${command[@]}" --epochs 1

kill_one() { # of the second host
  ip netns pids fasthost2 | while read -r process; do
    [[ $(cat "/proc/$process/comm" 2>/dev/null) != fast-train ]] || { kill -9 "$process" && break; }
  done
}
expect_on_the_way "a death" "3 of 4 ranks ended well" "$directory/run/metrics/0.jsonl" kill_one -- \
  "${command[@]}" --quiet --epochs 10 --step-ms 15 --suspect-after 1 --out "$directory/run"
grep -q "rank [23] .* died of signal 9" "$directory/output" || tell_failure "a death: which one?"
echo "$failures failures"
[[ $failures -eq 0 ]]
