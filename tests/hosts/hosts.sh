#!/usr/bin/env bash
# Several hosts on one Linux machine, for tests: network namespaces on a bridge, each with an address, hostname, process
# table and /dev/shm of its own, so that ranks on two of them share nothing but TCP. Needs root, iproute2 and MPI.
#   hosts.sh check [any|switch]  0 when this machine can do it; else says why not. any: with Open MPI too, for run alone. switch:
#                               for up --switch
#   hosts.sh up [N] [--switch PROGRAM]    N hosts (2), 10.99.0.1 ... 10.99.0.N; with PROGRAM (tests/hosts/switch.cpp) between them
#                               in place of the bridge
#   hosts.sh link I J SETTING...          with --switch, the link between two hosts, or  link all SETTING...  all of them:
#                               rate=10mbit delay=50ms jitter=10ms shape=lognormal loss=5% cut mend;  clear  ends all
#   hosts.sh rate 1gbit         limits every host's link;  rate off  ends it
#   hosts.sh cut [I J...]       no frame passes between hosts, or between those listed, though each still reaches this
#                               machine;  hosts.sh mend  ends it
#   hosts.sh unplug I           cuts host I from the others and from this machine;  hosts.sh plug I  mends that
#   hosts.sh lose I             the host is gone: cut off and all its processes killed, so that nobody hears of their end
#   hosts.sh kill I             host I is gone: its processes at once, and its link
#   hosts.sh run N -r R PROGRAM ARGUMENTS...    mpiexec with R ranks on each of N hosts
#   hosts.sh enter I COMMAND...                 runs the command on host I; bash reads its words again, as with ssh
#   hosts.sh down
set -euo pipefail
self=$(readlink -f "$0")
bridge=fasthosts
network=10.99.0.0/24
socket=/tmp/fasthosts.switch # of a switch in place of the bridge; .pid and .program beside it

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
# It stays until all processes of that table have ended: the system would kill those that outlive their first process.
enter() {
  local name=$1
  shift
  exec nsenter --net="/run/netns/$name" unshare -u -i -m --propagation unchanged -p -f bash -c "
    $(declare -f private_mounts); private_mounts && hostname $name &&
    mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /dev/shm && cd '$PWD' || exit 1
    others() { local one; for one in /proc/[0-9]*; do [[ \$one == /proc/1 ]] || return 0; done; return 1; }
    $*
    status=\$?
    while others; do sleep 0.05; done
    exit \$status"
}

is_open_mpi() { mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI"; }

hosts() { ip netns list | sed -n 's/^\(fasthost[0-9]*\).*/\1/p' | sort -V; }

has_switch() { [[ -S $socket ]]; }
ask_switch() { "$(cat $socket.program)" --ask $socket "$@"; }

# start_switch PROGRAM N: a device of this machine and one of each host, to be moved there.
start_switch() {
  "$1" $socket $bridge $(seq -f 'fh%g' "$2") </dev/null >$socket.log 2>&1 9>&- &
  echo $! >$socket.pid
  echo "$1" >$socket.program
  for ((i = 0; i < 100; ++i)); do
    has_switch && return
    kill -0 "$(cat $socket.pid)" 2>/dev/null || break
    sleep 0.05
  done
  cat $socket.log >&2
  return 1
}

# attach I: host I's device, to the switch or the bridge.
attach() {
  if has_switch; then
    ip link set "fh$1" netns "fasthost$1" name eth0 mtu 9000 # fewer frames for the switch
  else
    ip link add "fh$1" type veth peer name eth0 netns "fasthost$1"
    ip link set "fh$1" master $bridge up
  fi
}

case ${1:-} in
check)
  [[ $(id -u) -eq 0 ]] || { echo "network namespaces need root"; exit 1; }
  [[ ${2:-} != switch || -c /dev/net/tun ]] || { echo "there is no /dev/net/tun"; exit 1; }
  [[ ${2:-} == any ]] || ! is_open_mpi || { echo "this test starts MPICH's mpiexec, and the one here is Open MPI's"; exit 1; }
  command -v ip >/dev/null || { echo "iproute2 is not installed"; exit 1; }
  ip netns add fastcheck 2>/dev/null || { echo "this kernel or container has no network namespaces"; exit 1; }
  why=$(enter fastcheck true 2>&1) || { ip netns del fastcheck; echo "hosts cannot have mounts of their own: $why"; exit 1; }
  ip netns del fastcheck
  ip link add fastcheck type bridge 2>/dev/null || { echo "this kernel or container has no bridges"; exit 1; }
  ip link del fastcheck
  ;;
up)
  "$self" down
  count=2
  [[ -z ${2:-} || $2 == --* ]] || count=$2
  if [[ " $* " == *" --switch "* ]]; then start_switch "${!#}" "$count"; else ip link add $bridge type bridge; fi
  ip addr add 10.99.0.254/24 dev $bridge
  ip link set $bridge up
  for i in $(seq "$count"); do
    ip netns add "fasthost$i"
    attach "$i"
    in_network "fasthost$i" ip addr add "10.99.0.$i/24" dev eth0
    in_network "fasthost$i" ip link set eth0 up
    in_network "fasthost$i" ip link set lo up
  done
  ;;
link)
  has_switch || { echo "links have settings with  up N --switch PROGRAM  only" >&2 && exit 1; }
  ask_switch "$@"
  ;;
kill)
  if has_switch; then ask_switch host "$2" down; else ip link set "fh$2" down; fi
  ip netns pids "fasthost$2" | xargs -r kill -9 2>/dev/null || true
  ;;
rate)
  for host in $(hosts); do
    in_network "$host" tc qdisc del dev eth0 root 2>/dev/null || true
    [[ $2 == off ]] || in_network "$host" tc qdisc add dev eth0 root tbf rate "$2" burst 256kb latency 50ms
  done
  ;;
cut) # isolated ports reach those only that are not
  [[ $# -gt 1 ]] || set -- cut $(hosts | sed 's/^fasthost//')
  if has_switch; then
    for i in "${@:2}"; do for j in "${@:2}"; do [[ $i -ge $j ]] || ask_switch link "$i" "$j" cut; done; done
    exit
  fi
  for i in "${@:2}"; do ip link set "fh$i" type bridge_slave isolated on; done
  ;;
mend)
  ! has_switch || { ask_switch link all mend; exit; }
  for host in $(hosts); do ip link set "fh${host#fasthost}" type bridge_slave isolated off; done
  ;;
unplug) ip link set "fh$2" down ;;
plug) ip link set "fh$2" up ;;
lose)
  "$self" unplug "$2"
  ip netns pids "fasthost$2" | xargs -r kill -9 2>/dev/null || true
  ;;
run)
  count=$2 ranks=$4
  shift 4
  if is_open_mpi; then
    list=$(seq -f "10.99.0.%g:$ranks" -s , "$count")
    exec mpiexec --mca plm_rsh_agent "$self" --mca oob_tcp_if_include $network --mca btl_tcp_if_include $network \
      --oversubscribe --bind-to none --host "$list" -n $((count * ranks)) "$@"
  fi
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
  [[ ! -f $socket.pid ]] || kill "$(cat $socket.pid)" 2>/dev/null || true
  for ((i = 0; i < 100; ++i)); do has_switch || break; sleep 0.05; done
  rm -f $socket $socket.*
  ip link del $bridge 2>/dev/null || true
  ;;
-* | 10.99.0.*) # mpiexec calls this script as its remote shell: [-x] HOST COMMAND...
  while [[ $1 == -* ]]; do shift; done
  i=${1##*.}
  shift
  enter "fasthost$i" "$@"
  ;;
*)
  sed -n '2,16s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
