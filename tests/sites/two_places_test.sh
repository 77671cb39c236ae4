#!/usr/bin/env bash
# The commands of docs/tutorial/two-places.md: two places behind NAT, which have the same inner address, and a server with a
# public one. Needs root, iproute2, nftables and nats-server.
#   two_places_test.sh SOURCE BIN
set -euo pipefail
source=$(readlink -f "$1") bin=$(readlink -f "$2")
skip() { echo "skipped: $*"; exit 77; }
[[ $(id -u) -eq 0 ]] || skip "network namespaces need root"
for program in ip nft nsenter nats-server openssl perl; do
  command -v $program >/dev/null || skip "$program is not installed"
done
all=(server berlin-nat oslo-nat berlin oslo)
on() { nsenter --net="/run/netns/fast-$1" "${@:2}"; }
directory=$(mktemp -d)
clean() {
  for place in "${all[@]}"; do
    ip netns pids "fast-$place" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "fast-$place" 2>/dev/null || true
  done
  ip link del fastpublic 2>/dev/null || true
  rm -rf "$directory"
}
clean_before() { for place in "${all[@]}"; do ip netns del "fast-$place" 2>/dev/null || true; done; ip link del fastpublic 2>/dev/null || true; }
clean_before
trap clean EXIT
trap 'exit 1' TERM
ip netns add fast-server 2>/dev/null || skip "this kernel or container has no network namespaces"
ip link add fastpublic type bridge 2>/dev/null || skip "this kernel or container has no bridges"
ip link set fastpublic up

public() { # PLACE ADDRESS
  ip link add "fp-$1" type veth peer name eth0 netns "fast-$1"
  ip link set "fp-$1" master fastpublic up
  on "$1" ip addr add "$2/24" dev eth0
  on "$1" ip link set eth0 up
  on "$1" ip link set lo up
}
public server 203.0.113.1
number=10
for place in berlin oslo; do # a router with NAT, which lets nobody in, and a machine behind it
  number=$((number + 1))
  ip netns add "fast-$place-nat"
  ip netns add "fast-$place"
  public "$place-nat" 203.0.113.$number
  ip link add inner netns "fast-$place-nat" type veth peer name eth0 netns "fast-$place"
  on "$place-nat" ip addr add 192.168.1.1/24 dev inner
  on "$place-nat" ip link set inner up
  on "$place" ip addr add 192.168.1.2/24 dev eth0
  on "$place" ip link set eth0 up
  on "$place" ip link set lo up
  on "$place" ip route add default via 192.168.1.1
  on "$place-nat" sysctl -qw net.ipv4.ip_forward=1
  on "$place-nat" nft -f - <<'RULES' || skip "this kernel has no NAT"
table ip places {
  chain out { type nat hook postrouting priority 100; oifname "eth0" masquerade; }
  chain through { type filter hook forward priority 0; policy drop; ct state established,related accept; iifname "inner" accept; }
}
RULES
done

# 1. The server.
cp -r "$source/deploy/sites" "$directory/sites"
cd "$directory/sites"
./make_certificates.sh certificates 203.0.113.1
./make_sites.py . run7 berlin oslo
cp certificates/203.0.113.1.pem server.pem
cp certificates/203.0.113.1-key.pem server-key.pem
on server nats-server -c one.conf >"$directory/server.txt" 2>&1 &

# 2 and 3. The places.
cd "$directory"
python3 - <<'MAKE'
import random
draw = random.Random(1)
with open("data.csv", "w") as file:
    file.write("a,b,class\n")
    for _ in range(600):
        x, y = draw.gauss(0, 1), draw.gauss(0, 1)
        file.write(f"{x:.4f},{y:.4f},{int(x + y > 0)}\n")
MAKE
train() { # PLACE OPTIONS...
  FAST_NATS_CA_FILE=$directory/sites/certificates/ca.pem FAST_NATS_NKEY_FILE=$directory/sites/$1.nkey on "$1" \
    "$bin/fast-train" --data data.csv --target class --model mlp:16 --batch-size 10 --step-ms 5 --out "run-$1" --site "$1" \
    --site-url tls://203.0.113.1/run7 --site-every 50 --site-staleness inf "${@:2}"
}
await() { # FILE TEXT
  for ((i = 0; i < 600; ++i)); do
    grep -q "$2" "$1" && return
    sleep 0.1
  done
  echo "FAILED: no \"$2\" in $1:"
  cat "$1"
  exit 1
}
for ((i = 0; i < 100; ++i)); do on server bash -c '</dev/tcp/127.0.0.1/4222' 2>/dev/null && break; sleep 0.1; done
! on oslo timeout 2 bash -c '</dev/tcp/203.0.113.11/22' 2>/dev/null || { echo "FAILED: berlin can be reached"; exit 1; }
train berlin --epochs 100 >berlin.txt 2>&1 &
berlin=$!
await berlin.txt "takes part from exchange 0 on, with 0 other sites"
sleep 2
train oslo --epochs 40 >oslo.txt 2>&1 &
oslo=$!
await oslo.txt "has taken over the weights of site berlin"
await berlin.txt "site oslo takes part"
wait $oslo || { echo "FAILED: oslo:"; cat oslo.txt; exit 1; }
kill -TERM $berlin
wait $berlin || [[ $? == 143 ]] || { echo "FAILED: berlin:"; cat berlin.txt; exit 1; }
train oslo --epochs 1 --site paris >paris.txt 2>&1 && { echo "FAILED: oslo's key lets paris in"; exit 1; }
echo "ok: two places behind NAT have trained one model"
