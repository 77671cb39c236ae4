#!/usr/bin/env bash
# Several hosts on one Linux machine, for tests: network namespaces on a bridge, each with an address, hostname, process
# table and /dev/shm of its own, so that ranks on two of them share nothing but TCP. Needs root, iproute2 and MPICH.
#   hosts.sh check              0 when this machine can do it; else says why not
#   hosts.sh up [N]             N hosts (2), 10.99.0.1 ... 10.99.0.N
#   hosts.sh rate 1gbit         limits every host's link;  rate off  ends it
#   hosts.sh cut [I J...]       no frame passes between hosts, or between those listed, though each still reaches this
#                               machine;  hosts.sh mend  ends it
#   hosts.sh run N -r R PROGRAM ARGUMENTS...    mpiexec with R ranks on each of N hosts
#   hosts.sh enter I COMMAND...                 runs the command on host I; bash reads its words again, as with ssh
#   hosts.sh down
set -euo pipefail
self=$(readlink -f "$0")
bridge=fasthosts

in_network() { nsenter --net="/run/netns/$1" "${@:2}"; }

# `ip netns exec`, `ip -n` and `unshare -m` separate all mounts from the machine's first. That fails in a chroot whose root is
# no mount point. There each mount that is to be covered is separated alone.
private_mounts() {
  local place
  mount --make-rprivate / 2>/dev/null && return
  for place in /proc /sys /dev/shm; do
    mount --make-rprivate $place 2>/dev/null || { echo "neither / nor $place is a mount point; mount $place" >&2 && exit 1; }
  done
}

# enter NAME COMMAND...: replaces this process by one in the network of that name, with a hostname, process table, /sys and /dev/shm of its own.
enter() {
  local name=$1
  shift
  exec nsenter --net="/run/netns/$name" unshare -u -i -m --propagation unchanged -p -f bash -c "
    $(declare -f private_mounts); private_mounts && hostname $name &&
    mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /dev/shm && cd '$PWD' || exit 1
    exec $*"
}

hosts() { ip netns list | sed -n 's/^\(fasthost[0-9]*\).*/\1/p' | sort -V; }

case ${1:-} in
check)
  [[ $(id -u) -eq 0 ]] || { echo "network namespaces need root"; exit 1; }
  command -v ip >/dev/null || { echo "iproute2 is not installed"; exit 1; }
  ip netns add fastcheck 2>/dev/null || { echo "this kernel or container has no network namespaces"; exit 1; }
  why=$(enter fastcheck true 2>&1) || { ip netns del fastcheck; echo "hosts cannot have mounts of their own: $why"; exit 1; }
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
    in_network "fasthost$i" ip addr add "10.99.0.$i/24" dev eth0
    in_network "fasthost$i" ip link set eth0 up
    in_network "fasthost$i" ip link set lo up
  done
  ;;
rate)
  for host in $(hosts); do
    in_network "$host" tc qdisc del dev eth0 root 2>/dev/null || true
    [[ $2 == off ]] || in_network "$host" tc qdisc add dev eth0 root tbf rate "$2" burst 256kb latency 50ms
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
enter) enter "fasthost$2" "${@:3}" ;;
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
  enter "fasthost$i" "$@"
  ;;
*)
  sed -n '2,12s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
