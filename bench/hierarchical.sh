#!/usr/bin/env bash
# hierarchical.sh BIN [RATE]: seconds per round of 16 workers on four hosts, 4 on each, whose links have RATE (1gbit): without an
# exchange and with some topologies. The hosts are network namespaces of this machine (root, iproute2). BIN is the folder of
# the built programs. A step lasts STEP_MS (40); the model has 2 MB. ROUNDS (60) rounds are made, RUNS (3) times.
set -euo pipefail
bin=$(readlink -f "${1:?the folder of the built programs}")
rate=${2:-1gbit} step_ms=${STEP_MS:-40} rounds=${ROUNDS:-60} runs=${RUNS:-3}
here=$(dirname "$(readlink -f "$0")")
hosts=$here/../tests/hosts/hosts.sh
out=${OUT:-$(mktemp -d)}
why=$("$hosts" check) || { echo "hierarchical.sh: $why" >&2; exit 1; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9
trap '"$hosts" down' EXIT
"$hosts" up 4
"$hosts" rate "$rate"
batch=2
training=(--model mlp:640 --batch-size $batch --samples $((16 * batch * rounds)) --epochs 1 --step-ms "$step_ms" --seed 1
  --closing-rounds 0 --quiet)

# sent: bytes that all hosts have sent so far.
sent() {
  local i sum=0
  for i in 1 2 3 4; do sum=$((sum + $(nsenter --net="/run/netns/fasthost$i" awk "/eth0:/ { print \$10 }" /proc/net/dev))); done
  echo $sum
}
# measure NAME OPTION...
measure() {
  local name=$1 run before seconds
  shift
  for ((run = 0; run < runs; ++run)); do
    before=$(sent)
    timeout -k 5 300 "$hosts" run 4 -r 4 "$bin/fast-train" "${training[@]}" "$@" --summary-json "$out/$name-$run.json" \
      </dev/null >"$out/$name-$run.log" 2>&1 9>&- || { tail -3 "$out/$name-$run.log" >&2; exit 1; }
    seconds=$(sed -n 's/.*"seconds": *\([0-9.]*\).*/\1/p' "$out/$name-$run.json")
    awk -v name="$name" -v s="$seconds" -v n="$rounds" -v sent=$(($(sent) - before)) \
      'BEGIN { printf "%-24s %7.1f ms a round  %6.2f MB from a host in a round, with the copies for the mean model\n", name, 1000 * s / n, sent / n / 4e6 }'
  done
}
echo "four hosts of 4 workers, links of $rate, steps of $step_ms ms, $rounds rounds"
measure none --algorithm none
measure hierarchical_one_peer --topology hierarchical_one_peer
measure one_peer_exponential --topology one_peer_exponential
measure ring --topology ring
measure hierarchical --topology hierarchical
measure torus2d --topology torus2d
