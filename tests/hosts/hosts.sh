#!/usr/bin/env bash
# Several hosts on one Linux machine, for tests: network namespaces on a bridge, each with an address, hostname, process
# table and /dev/shm of its own, so that ranks on two of them share nothing but TCP. Needs root, iproute2 and MPICH.
#   hosts.sh check              0 when this machine can do it; else says why not
#   hosts.sh up [N]             N hosts (2), 10.99.0.1 ... 10.99.0.N
#   hosts.sh rate 1gbit         limits every host's link;  rate off  ends it
#   hosts.sh cut [I J...]       no frame passes between hosts, or between those listed, though each still reaches this
#                               machine;  hosts.sh mend  ends it
#   hosts.sh run N -r R PROGRAM ARGUMENTS...    mpiexec with R ranks on each of N hosts
#   hosts.sh down
set -euo pipefail
self=$(readlink -f "$0")
bridge=fasthosts

hosts() { ip netns list | sed -n 's/^\(fasthost[0-9]*\).*/\1/p' | sort -V; }

case ${1:-} in
check)
  [[ $(id -u) -eq 0 ]] || { echo "network namespaces need root"; exit 1; }
  command -v ip >/dev/null || { echo "iproute2 is not installed"; exit 1; }
  ip netns add fastcheck 2>/dev/null || { echo "this kernel or container has no network namespaces"; exit 1; }
  ip netns del fastcheck
  ip link add fastcheck type bridge 2>/dev/null || { echo "this kernel or container has no bridges"; exit 1; }
  ip link del fastcheck
  ;;
up)
  "$self" down
  ip link add $bridge type bridge
  ip addr add 10.99.0.254/24 dev $bridge
  ip link set $bridge up
  for i in $(seq "${2:-2}"); do
    ip netns add "fasthost$i"
    ip link add "fh$i" type veth peer name eth0 netns "fasthost$i"
    ip link set "fh$i" master $bridge up
    ip -n "fasthost$i" addr add "10.99.0.$i/24" dev eth0
    ip -n "fasthost$i" link set eth0 up
    ip -n "fasthost$i" link set lo up
  done
  ;;
rate)
  for host in $(hosts); do
    ip netns exec "$host" tc qdisc del dev eth0 root 2>/dev/null || true
    [[ $2 == off ]] || ip netns exec "$host" tc qdisc add dev eth0 root tbf rate "$2" burst 256kb latency 50ms
  done
  ;;
cut) # isolated ports reach those only that are not
  [[ $# -gt 1 ]] || set -- cut $(hosts | sed 's/^fasthost//')
  for i in "${@:2}"; do ip link set "fh$i" type bridge_slave isolated on; done
  ;;
mend)
  for host in $(hosts); do ip link set "fh${host#fasthost}" type bridge_slave isolated off; done
  ;;
run)
  count=$2 ranks=$4
  shift 4
  list=$(seq -f '10.99.0.%g' -s , "$count")
  exec mpiexec -launcher ssh -launcher-exec "$self" -iface $bridge -hosts "$list" \
    -n $((count * ranks)) -ppn "$ranks" "$@"
  ;;
down)
  for host in $(hosts); do
    ip netns pids "$host" | xargs -r kill -9 2>/dev/null || true
    ip link del "fh${host#fasthost}" 2>/dev/null || true  # at once; a namespace goes when its last process does
    ip netns del "$host"
  done
  ip link del $bridge 2>/dev/null || true
  ;;
-* | 10.99.0.*) # mpiexec calls this script as its remote shell: [-x] HOST COMMAND...
  while [[ $1 == -* ]]; do shift; done
  i=${1##*.}
  shift
  exec ip netns exec "fasthost$i" unshare -u -i -m -p -f --mount-proc \
    bash -c "hostname fasthost$i; mount -t tmpfs tmpfs /dev/shm; cd '$PWD'; exec $*"
  ;;
*)
  sed -n '2,11s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
