#!/usr/bin/env bash
# A worker leaves: its neighbors of its own host and of the other one train on its samples.
#   take_over_test.sh FASTRUN FAST_TRAIN. 77: cannot be done here.
set -uo pipefail
fastrun=$1 train=$2
source "$(dirname "$0")/../support/hosts.sh" ""
"$hosts" up 2

# Ranks 0 and 1 are on one host, rank 2 on the other.
ask() { echo "leave 1" >>"$directory/control"; }
gone="samples and on 100 of workers that are gone (1)"
expect_on_the_way "a worker leaves" "worker 0: trains on its 200 $gone" "$directory/run/metrics/0.jsonl" ask -- \
  "$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 3 --control "$directory/control" "$train" --samples 600 --model mlp \
  --batch-size 10 --step-ms 20 --suspect-after 5 --quiet --epochs 12 --shards dirichlet:0.1 --take-over --out "$directory/run"
grep -qF "worker 2: trains on its 200 $gone" "$directory/output" || report_failure "the neighbor of the other host does not take over"
! grep -q "error:" "$directory/output" || report_failure "an error"
echo "$failures failures"
[[ $failures -eq 0 ]]
