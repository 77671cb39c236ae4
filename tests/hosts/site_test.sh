#!/usr/bin/env bash
# A site whose ranks are on two hosts loses a rank: its gateway, or another one. It ends with one error, the other site goes on,
# and the site takes over its weights when it is started again.   site_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
command -v nats-server >/dev/null || { echo "skipped: nats-server is not installed; apt-get install nats-server"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; "$hosts" down; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
failures=0
report_failure() { echo "FAILED: $1"; failures=$((failures + 1)); }
export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$hosts HYDRA_IFACE=fasthosts
"$hosts" up 2
nats-server -a 10.99.0.254 -p 4222 >"$directory/server.txt" 2>&1 9>&- &
site=(--data digits --model mlp:32 --batch-size 10 --step-ms 10 --quiet --site-url nats://10.99.0.254:4222/run --site-every 10
  --site-staleness inf)
HYDRA_IFACE='' "$train" "${site[@]}" --site lasting --epochs 1000 --out "$directory/lasting" >"$directory/lasting.txt" 2>&1 9>&- &
lasting=$!
said() { # FILE TEXT: waits for it
  for ((i = 0; i < 600; ++i)); do grep -qF "$2" "$directory/$1" && return; sleep 0.1; done
  report_failure "$1 does not say: $2"
  cat "$directory/$1"
}
pid_of() { # RANK: of two on each host
  local pid
  for pid in $(ip netns pids fasthost$(($1 / 2 + 1))); do
    [[ $(cat /proc/$pid/comm) == fast-train ]] && tr '\0' '\n' </proc/$pid/environ | grep -qx "PMI_RANK=$1" && echo $pid && return
  done
}
said lasting.txt "takes part"
for victim in 0 2; do
  timeout -k 5 90 "$fastrun" -n 4 --hosts 10.99.0.1,10.99.0.2 --ppn 2 --min-workers 2 "$train" "${site[@]}" \
    --site pair --epochs 1000 --out "$directory/pair$victim" </dev/null >"$directory/pair$victim.txt" 2>&1 9>&- &
  pair=$!
  said pair$victim.txt "has taken over the weights of site lasting"
  for ((i = 0; i < 600; ++i)); do grep -q '"site"' "$directory/pair$victim/metrics/0.jsonl" 2>/dev/null && break; sleep 0.1; done
  began=$SECONDS
  kill -9 "$(pid_of $victim)"
  wait $pair
  status=$?
  echo "rank $victim is killed: status $status after $((SECONDS - began)) s"
  [[ $status -ne 0 && $status -lt 124 ]] || report_failure "rank $victim: status $status"
  [[ $((SECONDS - began)) -lt 60 ]] || report_failure "rank $victim: it took $((SECONDS - began)) s"
  errors=$(grep -c "^error: " "$directory/pair$victim.txt")
  [[ $errors -eq 1 ]] || { report_failure "rank $victim: $errors errors"; cat "$directory/pair$victim.txt"; }
  said lasting.txt "site pair is not there"
done
kill -0 $lasting || { report_failure "the other site has ended"; cat "$directory/lasting.txt"; }
kill $lasting
wait $lasting
echo "$failures failures"
[[ $failures -eq 0 ]]
