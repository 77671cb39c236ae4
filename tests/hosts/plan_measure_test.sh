#!/usr/bin/env bash
# fast-topology plan --measure.
#   plan_measure_test.sh FAST_TOPOLOGY MPIEXEC     ranks of one host, and what is wrong
#   plan_measure_test.sh FAST_TOPOLOGY "" SWITCH   four hosts with links of known rate and delay; a host that does not
#                                                  answer.  77: cannot be done here
set -uo pipefail
topology=$1 mpiexec=$2 switch=${3:-}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
plan=("$topology" plan --measure --topologies ring,base2 --codecs identity --rounds 20)
once() { [[ $(grep -c "$2" "$directory/output") -eq 1 ]] || report_failure "$1: \"$2\" is not there once"; }
# within TITLE LOW VALUE HIGH
within() { awk -v a="$2" -v b="$3" -v c="$4" 'BEGIN { exit !(a <= b && b <= c) }' || report_failure "$1: $3 is not from $2 to $4"; }
value() { sed -n "s/^$1 = //p" "$directory/cluster.toml"; }

if [[ -n $mpiexec ]]; then
  expect "one host" 0 "measured in " "1 host of 3 workers" "all-reduce (ring)" "best: " -- \
    "$mpiexec" -n 3 "${plan[@]}" --measure-s 1 --model mlp:8 --write-cluster "$directory/cluster.toml" --svg "$directory/best.svg"
  once "one host" "best: "
  grep -q "<svg" "$directory/best.svg" || report_failure "one host: no picture"
  [[ $(value payload_bytes) == 25480 ]] || report_failure "one host: payload_bytes = $(value payload_bytes)" # 785·8 + 9·10 floats
  expect "planned again" 0 "best: " -- "$topology" plan --cluster "$directory/cluster.toml" --topologies ring --codecs identity
  expect "json" 0 '"link_bandwidth"' -- "$mpiexec" -n 2 "${plan[@]}" --measure-s 1 --step-ms 25 --parameters 1e4 --json
  python3 -c "
import json, sys
measured = json.load(open(sys.argv[1]))['measured']
assert measured['step_s'] == 0.025 and measured['payload_bytes'] == 40000, measured" "$directory/output" ||
    report_failure "json: other figures"
  expect "one rank" 2 "there is one rank" -- "$mpiexec" -n 1 "${plan[@]}"
  expect "both" 2 "--cluster and --measure exclude each other" -- "$mpiexec" -n 2 "${plan[@]}" --cluster x.toml
  once "both" "exclude"
  expect "unknown option" 2 "--stap-ms" -- "$mpiexec" -n 2 "${plan[@]}" --stap-ms 3
  once "unknown option" "there is no option"
  expect "unknown model" 2 "error: " -- "$mpiexec" -n 2 "${plan[@]}" --model nonsense
  once "unknown model" "error: "
  expect "no directory" 1 "cannot be written" -- "$mpiexec" -n 2 "${plan[@]}" --write-cluster "$directory/none/c.toml"
  once "no directory" "error: "
  expect "a model of a file" 2 "--model: small.toml is a file; give a model by name" -- "$mpiexec" -n 2 "${plan[@]}" --model small.toml
  echo "hosts = two" >"$directory/bad.toml"
  expect "a bad file, on two ranks" 2 "bad.toml" -- "$mpiexec" -n 2 "$topology" plan --cluster "$directory/bad.toml"
  once "a bad file, on two ranks" "fast-topology: "
  expect "a plan on two ranks" 0 "best: " -- \
    "$mpiexec" -n 2 "$topology" plan --cluster "$directory/cluster.toml" --topologies ring --codecs identity --rounds 20
  once "a plan on two ranks" "best: "
  expect "nothing" 2 "give --cluster FILE, --sites FILE, or --measure" -- "$topology" plan
  for option in "--step-ms 3" "--parameters 10" "--write-cluster c.toml" "--model mlp" "--batch-size 8" "--measure-s 2"; do
    # shellcheck disable=SC2086
    expect "$option without --measure" 2 "plan: ${option% *} belongs to --measure" -- "$topology" plan $option --cluster "$directory/cluster.toml"
  done
  echo "$failures failures"
  [[ $failures -eq 0 ]]
  exit
fi

hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check switch) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
trap '"$hosts" down; rm -rf "$directory"' EXIT
why=$("$hosts" up 4 --switch "$switch" 2>&1) || { echo "skipped: no TAP devices: $why"; exit 77; }
"$hosts" link all rate=100mbit delay=20ms

# 12.5 MB/s and 20 ms. A busy machine makes the switch slower, not faster: up to four times, until the figures are there.
for try in 1 2 3 4; do
  expect "four hosts" 0 "measured in " "4 hosts of 2 workers" "best: " -- \
    "$hosts" run 4 -r 2 "${plan[@]}" --step-ms 40 --parameters 5e5 --measure-s 8 --write-cluster "$directory/cluster.toml"
  grep "^measured" "$directory/output"
  awk -v l="$(value link_latency_s)" -v b="$(value link_bandwidth)" 'BEGIN { exit !(l < 0.024 && b > 8.5e6) }' && break
done
within "latency, s" 0.016 "$(value link_latency_s)" 0.024
within "bytes per second" 8.5e6 "$(value link_bandwidth)" 15e6
[[ $(value step_s) == 0.04 && $(value hosts) == 4 && $(value workers_per_host) == 2 ]] || report_failure "other figures"

# Once host 3 has sent long messages, no frame passes between it and the others.
sent_by_3() { nsenter --net=/run/netns/fasthost3 awk '/eth0:/ { print $10 }' /proc/net/dev; }
cut_3() {
  local before
  before=$(sent_by_3)
  for ((i = 0; i < 400 && $(sent_by_3) - before < 2000000; ++i)); do sleep 0.1; done
  for i in 1 2 4; do "$hosts" link $((i < 3 ? i : 3)) $((i < 3 ? 3 : i)) cut; done
}
cut_3 9>&- &
expect "a host that does not answer" 1 "host fasthost3 (rank" "not answered" -- \
  "$hosts" run 4 -r 2 "${plan[@]}" --step-ms 40 --measure-s 30
echo "$failures failures"
[[ $failures -eq 0 ]]
