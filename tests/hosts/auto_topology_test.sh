#!/usr/bin/env bash
# --topology auto: one line says what was chosen and why, config.toml has the name, and a run with that file repeats the run.
#   auto_topology_test.sh ranks FAST_TRAIN MPIEXEC    ranks of one host
#   auto_topology_test.sh hosts FAST_TRAIN            four hosts, not measured; what crosses their links, too
#   auto_topology_test.sh links FAST_TRAIN            measured links of hosts.   77: hosts cannot be made here
set -uo pipefail
part=$1 train=$2 mpiexec=${3:-}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
training=(--samples 1280 --model mlp:16 --batch-size 16 --epochs 1 --quiet --seed 3)

# chosen TITLE NAME REASON COMMAND... -- OPTION...: the choice, what is recorded of it, and the same run again.
chosen() {
  local title=$1 name=$2 reason=$3 run=()
  shift 3
  while [[ $1 != -- ]]; do run+=("$1") && shift; done
  shift
  local out=$directory/run again=$directory/again
  rm -rf "$out" "$again"
  expect "$title" 0 "topology: $name ($reason" -- "${run[@]}" "$train" "${training[@]}" "$@" --topology auto --out "$out"
  [[ $(grep -c "^topology: " "$directory/output") -eq 1 ]] || report_failure "$title: the choice is not printed once"
  grep -qxE "topology = \"$name\"( *#.*)?" "$out/config.toml" || report_failure "$title: not in config.toml"
  expect "$title, again" 0 -- "${run[@]}" "$train" --config "$out/config.toml" --out "$again"
  grep -q "^topology: " "$directory/output" && report_failure "$title, again: there was nothing to choose"
  [[ $(results "$out/metrics/0.jsonl") -gt 0 ]] || report_failure "$title: no metrics"
  cmp "$out/mean-model.safetensors" "$again/mean-model.safetensors" || report_failure "$title: another model"
}

if [[ $part == ranks ]]; then
  for ranks in 1 2 3 4; do
    workers="1 host, $ranks worker$([[ $ranks -eq 1 ]] || echo s): "
    chosen "$ranks ranks" torus2d "$workers" "$mpiexec" -n $ranks --
    pairs=$([[ $ranks -le 2 ]] && echo torus2d || echo random_matchings)
    chosen "$ranks ranks, pairwise" "$pairs" "$workers" "$mpiexec" -n $ranks -- --algorithm pairwise
  done
  chosen "threads" torus2d "1 host, 3 workers: " env -- --exchange local --workers 3
  expect "no neighbors" 2 "error: " "--topology" -- "$mpiexec" -n 2 "$train" "${training[@]}" --exchange allreduce --topology auto
  echo "$failures failures"
  [[ $failures -eq 0 ]]
  exit
fi

hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
trap '"$hosts" down; rm -rf "$directory"' EXIT
"$hosts" up 4

if [[ $part == hosts ]]; then
  # By hosts alone.
  chosen "4 hosts of 2" hierarchical_one_peer "4 hosts, 2 workers each: " "$hosts" run 4 -r 2 -- --measure-s 0
  chosen "2 hosts of 3" hierarchical_one_peer "2 hosts, 3 workers each: " "$hosts" run 2 -r 3 -- --measure-s 0
  chosen "3 hosts of 1" base2 "3 hosts, 1 worker each: " "$hosts" run 3 -r 1 -- --measure-s 0
  expect "staleness 1" 0 "topology: hierarchical (2 hosts, 2 workers each: " "not measured: --measure-s 0" -- \
    "$hosts" run 2 -r 2 "$train" "${training[@]}" --staleness 1 --topology auto --measure-s 0

  # In a cycle of 5 rounds, 2 payloads leave each host: 80 in 200 rounds. What else is sent does not depend on the rounds, but
  # for the counters that workers send each other.
  payload_bytes=814120
  sent_by() { nsenter --net="/run/netns/fasthost$1" awk '/eth0:/ { print $10 }' /proc/net/dev; }
  # sends ROUNDS: what each host sends in a run of so many rounds, in sent[HOST].
  sends() {
    local host before=()
    for host in 1 2 3 4; do before[host]=$(sent_by $host); done
    expect "what crosses the links" 0 "rounds                        $1" -- "$hosts" run 4 -r 2 "$train" --topology auto \
      --measure-s 0 --samples $((8 * 16 * $1)) --model mlp:256 --batch-size 16 --epochs 1 --quiet --seed 3 --closing-rounds 0
    for host in 1 2 3 4; do sent[host]=$(($(sent_by $host) - before[host])); done
  }
  sends 100 && short=("${sent[@]}") && sends 300
  for host in 1 2 3 4; do
    payloads=$(((sent[host] - short[host - 1]) / payload_bytes))
    echo "host $host has sent $payloads payloads in 200 rounds"
    [[ $payloads -ge 78 && $payloads -le 95 ]] || report_failure "host $host has sent $payloads payloads, 80 are required"
  done
else
  # By measured links. Long steps hide 50 KB: a ring of 3, in which all read each other, agrees in fewer rounds. At 1 Mbit/s
  # its rounds would take twice as long as those of base2.
  chosen "long steps" ring "3 hosts, 1 worker each; measured " "$hosts" run 3 -r 1 -- --step-ms 100
  "$hosts" rate 1mbit
  expect "slow links" 0 "topology: base2 (3 hosts, 1 worker each: " "; measured " "no other one is 10 % faster" -- \
    "$hosts" run 3 -r 1 "$train" "${training[@]}" --samples 480 --step-ms 100 --topology auto
  "$hosts" rate off

  # Once host 3 has sent long messages, no frame passes between hosts any more.
  sent_by_3() { nsenter --net=/run/netns/fasthost3 awk '/eth0:/ { print $10 }' /proc/net/dev; }
  cut_all() {
    local before
    before=$(sent_by_3)
    for ((i = 0; i < 400 && $(sent_by_3) - before < 2000000; ++i)); do sleep 0.1; done
    "$hosts" cut
  }
  cut_all 9>&- &
  expect "hosts that do not answer" 1 "error: measuring links: " "not answered" -- \
    "$hosts" run 3 -r 1 "$train" "${training[@]}" --topology auto --measure-s 30
  [[ $(grep -c "error: " "$directory/output") -eq 1 ]] || report_failure "hosts that do not answer: there is not one message"
  wait $!
  "$hosts" mend
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
