#!/usr/bin/env bash
# Two hosts of 4 workers under hierarchical_one_peer and in shards, in name only. A worker is killed: others represent its
# host, and the survivors of both hosts agree to the end.   lost_representative_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
cat >"$directory/rank" <<'EOR'
#!/usr/bin/env bash
[[ $FASTRUN_RANK != 1 ]] || echo $$ >"$directory/victim"
exec "$@"
EOR
chmod +x "$directory/rank"
export directory
cp "$(dirname "$0")/../../topology/hierarchical-one-peer.toml" "$directory"
printf 'schedule = "sharded_one_peer"\nworkers_per_host = 4\n' >"$directory/sharded.toml"
kill_victim() { kill -9 "$(cat "$directory/victim")"; }
# Without averaging between hosts their models part: the samples of each worker are of few classes.
training=(--model mlp:16 --samples 2400 --batch-size 10 --epochs 8 --step-ms 5 --shards dirichlet:0.2 --seed 5 --closing-rounds 0 --quiet
  --suspect-after 1)
distance() { sed -n 's/.*consensus distance *\([0-9.e+-]*\).*/\1/p' "$directory/output"; }

apart='edges = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3], [4, 5], [4, 6], [4, 7], [5, 6], [5, 7], [6, 7]]'
echo "$apart" >"$directory/apart.toml"
expect "hosts that never exchange" 0 "the parts of the topology stay apart" -- \
  "$fastrun" -n 8 "$train" "${training[@]}" --topology "$directory/apart.toml"
apart=$(distance)
for topology in hierarchical-one-peer sharded; do
  expect_on_the_way "a killed worker" "7 of 8 ranks ended well" "$directory/$topology/metrics/0.jsonl" kill_victim -- \
    "$fastrun" -n 8 --min-workers 7 "$directory/rank" "$train" "${training[@]}" --topology "$directory/$topology.toml" \
    --out "$directory/$topology"
  found=$(distance)
  grep -qE "lost workers +1$" "$directory/output" || report_failure "the summary names another worker"
  echo "$topology: consensus distance ${found:-none}; of hosts that never exchange ${apart:-none}"
  awk "BEGIN { exit !(${found:-1} < 0.05 * ${apart:-0}) }" || report_failure "the survivors do not agree"
done
echo "$failures failures"
[[ $failures -eq 0 ]]
