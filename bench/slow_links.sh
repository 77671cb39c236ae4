#!/usr/bin/env bash
# slow_links.sh BIN [OPTIONS]: the speed of training over slow links, as a share of the speed without exchange. 8 paced
# workers on 4 hosts, network namespaces of this machine with a switch in user space between them (root, iproute2,
# /dev/net/tun). BIN is the folder of the built programs: bench_scaling and switch. Takes about 7 minutes.
#   --out DIR         results, one JSON file a cell (build/slow_links). A cell that has its file is not run again
#   --cells REGEX     only cells whose name matches
#   --list            prints the cells
# A cell: GROUP.LINK.METHOD. Groups: paced, 1 MB and steps of 40 ms; loss-reno and loss-bbr, the same with 1 % of the frames
# lost; images and text, the models of bench/local_steps.py. bench/slow_links.py makes the tables.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
hosts=${HOSTS:-$here/../tests/hosts/hosts.sh}
bin=$(readlink -f "${1:?the folder of the built programs}")
shift
out=build/slow_links only=. list=
while (($#)); do
  case $1 in
  --out) out=${2:?} && shift 2 ;;
  --cells) only=${2:?} && shift 2 ;;
  --list) list=yes && shift ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
count=4 ranks=2 period=50
declare -A settings=([unlimited]="" [100mbit]="rate=100mbit delay=10ms" [10mbit]="rate=10mbit delay=50ms") # one way
declare -A delay=([unlimited]=45 [100mbit]=45 [10mbit]=45) # of the paced group, in steps: 1.8 s

cells=()
cell() { [[ ! $1.$2.$3 =~ $only ]] || cells+=("$*"); } # GROUP LINK METHOD ROUNDS ARGUMENTS...
outer() { echo "--rule $1 --rule-option period=$period ${*:2}"; }
late() { echo "--rule-option delay=${delay[$1]}"; }
pairs="--topology random_matchings"
for link in 100mbit 10mbit; do
  few=$([[ $link == 10mbit ]] && echo 6 || echo 25)
  cell paced $link none 100 --method none
  cell paced $link gasloc-delayed 100 $(outer gasloc $(late $link))
  cell paced $link noloco-delayed 100 $pairs $(outer noloco $(late $link))
  cell paced $link local 100 $(outer local)
  cell paced $link awc_gasloc-sites 100 --topology sites:$period --rule awc_gasloc
  cell paced $link sparta 60 --rule sparta
  cell paced $link sparta-stale4 60 --rule sparta --staleness 4
  cell paced $link awc $few --rule awc
  cell paced $link allreduce $few --method allreduce
done
for congestion in reno bbr; do
  for link in 100mbit 10mbit; do
    cell loss-$congestion $link gasloc-delayed 100 $(outer gasloc $(late $link))
    cell loss-$congestion $link noloco-delayed 100 $pairs $(outer noloco $(late $link))
    cell loss-$congestion $link awc 6 --rule awc
  done
done
for model in images:0.246824 text:0.095904; do
  size="--mb ${model#*:}"
  for link in unlimited 100mbit 10mbit; do
    few=$([[ $link == 10mbit ]] && echo 10 || echo 40)
    cell "${model%:*}" $link allreduce $few $size --method allreduce
    cell "${model%:*}" $link awc $few $size --rule awc
    cell "${model%:*}" $link local 50 $size $(outer local)
    cell "${model%:*}" $link diloco 50 $size --topology complete $(outer diloco)
    cell "${model%:*}" $link noloco 50 $size $pairs $(outer noloco)
    cell "${model%:*}" $link gasloc 50 $size $(outer gasloc)
    cell "${model%:*}" $link gasloc-peer 50 $size --topology one_peer_exponential $(outer gasloc)
    cell "${model%:*}" $link gasloc-int4 50 $size --codec int4 $(outer gasloc --rule-option changes=true)
    cell "${model%:*}" $link gasloc-int2 50 $size --codec int2 $(outer gasloc --rule-option changes=true)
    cell "${model%:*}" $link sparta 40 $size --rule sparta
  done
done

if [[ -n $list ]]; then
  for one in "${cells[@]}"; do echo "$one"; done
  exit
fi
[[ ${#cells[@]} -gt 0 ]] || { echo "slow_links.sh: no cell matches $only; --list names them" >&2; exit 2; }
why=$("$hosts" check) || { echo "slow_links.sh: skipped: $why" >&2; exit 77; }
[[ -c /dev/net/tun ]] || { echo "slow_links.sh: skipped: no /dev/net/tun here" >&2; exit 77; }
mkdir -p "$out"
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 300 9 || { echo "slow_links.sh: other tests have used the hosts of this machine for five minutes" >&2; exit 1; }
trap '"$hosts" down' EXIT
"$hosts" up $count --switch "$bin/switch"
known=$(cat /proc/sys/net/ipv4/tcp_allowed_congestion_control) # in namespaces
usual=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
# takes CONGESTION: the hosts' TCP from now on; false: this machine does not allow it.
takes() {
  [[ " $known " == *" $1 "* ]] || return 1
  for i in $(seq $count); do
    nsenter --net="/run/netns/fasthost$i" sysctl -qw net.ipv4.tcp_congestion_control="$1"
  done
}
began=$SECONDS done_now=0
for one in "${cells[@]}"; do
  read -r group link method rounds arguments <<<"$one"
  file=$out/$group.$link.$method.json
  [[ ! -s $file ]] || continue
  congestion=$usual loss=
  [[ $group != loss-* ]] || { congestion=${group#loss-} loss="loss=1%"; }
  takes $congestion || { echo "slow_links.sh: $group: no TCP $congestion here (there is: $known)" >&2; continue; }
  [[ $arguments == *--mb* ]] || arguments="--mb 1 $arguments"
  [[ $arguments == *--topology* ]] || arguments="--topology ring $arguments"
  "$hosts" link all clear ${settings[$link]} $loss
  if timeout -k 5 120 "$hosts" run $count -r $ranks "$bin/bench_scaling" $arguments --step-ms 40 \
    --rounds "$rounds" --json "$file.new" </dev/null >"$file.log" 2>&1 9>&-; then
    mv "$file.new" "$file" && rm -f "$file.log"
    done_now=$((done_now + 1))
  else
    echo "slow_links.sh: $group.$link.$method failed: $(tail -1 "$file.log")" >&2
  fi
done
echo "$done_now cells of ${#cells[@]} were run in $((SECONDS - began)) s, TCP $usual, load $(cut -d' ' -f1-3 /proc/loadavg); results are in $out"
