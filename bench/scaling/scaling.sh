#!/usr/bin/env bash
# scaling.sh BIN [OPTIONS]: the scaling study. Paced workers on 1 to 4 hosts, network namespaces of this machine (root,
# iproute2), exchange by nearest neighbors, all-reduces and parameter servers. BIN is the folder of the built programs.
#   --out DIR         results, one JSON file a cell (build/scaling). A cell that has its file is not run again
#   --cells REGEX     only cells whose name matches
#   --list            prints the cells
#   --train           cells of training too: the accuracy after each epoch (about 10 minutes more)
#   --rounds N        of each cell but those of training (40)
# The names of cells say what differs from the base cell: 16 workers on 4 hosts, links of 1 Gbit/s, 2 MB, steps of 40 ms,
# ring, staleness 0. bench/scaling/tables.py makes tables and pictures of the results.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
hosts=${HOSTS:-$here/../../tests/hosts/hosts.sh}
bin=$(readlink -f "${1:?the folder of the built programs}")
shift
out=build/scaling only=. list= rounds=40 train=
while (($#)); do
  case $1 in
  --out) out=${2:?} && shift 2 ;;
  --cells) only=${2:?} && shift 2 ;;
  --rounds) rounds=${2:?} && shift 2 ;;
  --train) train=yes && shift ;;
  --list) list=yes && shift ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done

# A cell: NAME LINK HOSTS RANKS-A-HOST ARGUMENTS... LINK is "none" (one host), or the rate of each
# host, or that and settings of a switch between the hosts: 100mbit+delay=20ms.
cells=()
cell() { [[ ! $1 =~ $only ]] || cells+=("$*"); }

declare -A method=(
  [none]="--method none"
  [ring]="--topology ring"
  [torus]="--topology torus2d"
  [one-peer]="--topology one_peer_exponential"
  [hierarchical]="--topology hierarchical"
  [hierarchical-one-peer]="--topology hierarchical_one_peer"
  [ring-stale1]="--topology ring --staleness 1"
  [ring-inf]="--topology ring --staleness inf"
  [one-peer-inf]="--topology one_peer_exponential --staleness inf"
  [ring-int8]="--topology ring --codec int8"
  [ring-int8-stale1]="--topology ring --codec int8 --staleness 1"
  [ring-every8]="--topology ring --rule gasloc --rule-option period=8 --rule-option delay=6"
  [one-peer-int8]="--topology one_peer_exponential --codec int8"
  [all-reduce]="--method allreduce"
  [mpi-all-reduce]="--method mpi_allreduce"
  [ddp]="ddp"
  [torch-alone]="ddp --alone"
  [server]="--method server"
  [server-async]="--method server_async"
)
order=(none ring torus one-peer hierarchical hierarchical-one-peer ring-stale1 ring-inf one-peer-inf ring-int8 one-peer-int8 all-reduce
  mpi-all-reduce ddp torch-alone server server-async)
base() { # NAME LINK HOSTS RANKS METHOD ARGUMENTS...
  local options=${method[$5]}
  [[ $5 != hierarchical* ]] || { (($3 > 1 && $4 > 1)) || return 0; }
  cell "$1" "$2" "$3" "$4" $options "${@:6}"
}
for name in "${order[@]}"; do
  # Weak scaling: steps stay as long. One to 16 workers on 4 hosts, or as many hosts as there are workers.
  [[ $name == hierarchical* ]] || base "n1/$name" none 1 1 "$name"
  base "n2/$name" 1gbit 2 1 "$name"
  base "n4/$name" 1gbit 4 1 "$name"
  base "n8/$name" 1gbit 4 2 "$name"
  base "n16/$name" 1gbit 4 4 "$name"
done
main=(none ring one-peer hierarchical hierarchical-one-peer ring-inf all-reduce mpi-all-reduce ddp server server-async)
for name in "${main[@]}"; do
  base "hosts1/$name" none 1 16 "$name"
  base "hosts2/$name" 1gbit 2 8 "$name"
  base "100mbit/$name" 100mbit+delay=20ms 4 4 "$name"
  base "10gbit/$name" 10gbit 4 4 "$name"
  base "quarter-mb/$name" 1gbit 4 4 "$name" --mb 0.25
  base "jitter/$name" 1gbit 4 4 "$name" --jitter 0.2
  base "slow/$name" 1gbit 4 4 "$name" --slow 4
  # Strong scaling: 16 workers share the work of 4, so that steps are a fourth.
  base "strong/$name" 1gbit 4 4 "$name" --step-ms 10
done
# Strong scaling over N: all workers together compute 160 ms a round. 4 workers are the cells n4, 16 are strong.
for name in none ring ring-int8 hierarchical-one-peer ring-inf all-reduce mpi-all-reduce; do
  [[ $name == hierarchical* ]] || base "strong1/$name" none 1 1 "$name" --step-ms 160
  base "strong2/$name" 1gbit 2 1 "$name" --step-ms 80
  base "strong8/$name" 1gbit 4 2 "$name" --step-ms 20
done
base strong/ring-int8 1gbit 4 4 ring-int8 --step-ms 10
for name in none ring ring-int8 ring-int8-stale1 ring-every8 hierarchical-one-peer ring-inf all-reduce mpi-all-reduce; do
  base "100mb/$name" 1gbit 4 1 "$name" --mb 100 --step-ms 400
  base "100mb8/$name" 1gbit 4 2 "$name" --mb 100 --step-ms 400
done

# Training: an MLP of 2.1 MB on 12,800 images of Fashion-MNIST, 50 rounds in an epoch, the accuracy after each epoch. The
# same beside a worker that is 4 times as slow.
for name in ring one-peer hierarchical-one-peer ring-inf all-reduce mpi-all-reduce ddp server server-async; do
  [[ -n $train ]] || break
  base "train/$name" 1gbit 4 4 "$name" --curve
  [[ $name != ring && $name != ring-inf && $name != all-reduce ]] || base "train-slow/$name" 1gbit 4 4 "$name" --curve --slow 4
done
trained=(--model mlp:512-256 --samples 12800 --batch-size 16 --epochs 10 --lr 0.1 --momentum 0.5 --step-ms 40)

if [[ -n $list ]]; then
  for one in "${cells[@]}"; do echo "$one"; done
  exit
fi
why=$("$hosts" check) || { echo "scaling.sh: $why" >&2; exit 1; }
mkdir -p "$out"
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9
up= # what is up now: LINK HOSTS
down() { [[ -z $up ]] || "$hosts" down; up=; }
trap down EXIT
bring_up() { # LINK HOSTS
  [[ $up != "$*" ]] || return 0
  down
  [[ $1 != none ]] || return 0
  up="$*"
  if [[ $1 == *+* ]]; then
    "$hosts" up "$2" --switch "$bin/switch"
    local settings=${1#*+}
    "$hosts" link all ${settings//,/ }
  else
    "$hosts" up "$2"
  fi
  "$hosts" rate "${1%%+*}"
}
[[ ${#cells[@]} -gt 0 ]] || { echo "scaling.sh: no cell matches $only; --list names them" >&2; exit 2; }
began=$SECONDS done_now=0
# By link and hosts, so that these seldom change.
while read -r name link count ranks arguments; do
  file=$out/${name//\//.}.json
  [[ ! -s $file ]] || continue
  bring_up "$link" "$count"
  run=(mpiexec -n "$ranks")
  [[ $link == none ]] || run=("$hosts" run "$count" -r "$ranks")
  slow_rounds=$rounds limit_s=180
  [[ $name != 100mb* ]] || slow_rounds=$(((rounds + 3) / 4))
  program=("$bin/bench_scaling" --rounds "$slow_rounds")
  [[ $name != train* ]] || { program=("$bin/bench_training" "${trained[@]}") && limit_s=400; }
  if [[ $arguments == ddp* ]]; then # PyTorch's own, where it is installed
    /usr/bin/python3 -c 'import torch' 2>/dev/null || { echo "scaling.sh: $name: no PyTorch; apt-get install python3-torch" >&2; continue; }
    program=(/usr/bin/python3 "$here/ddp.py" --rounds "$slow_rounds") arguments=${arguments#ddp}
    [[ $name != train* ]] || program=(/usr/bin/python3 "$here/ddp_training.py" "${trained[@]}")
    export MASTER_ADDR=10.99.0.1 GLOO_SOCKET_IFNAME=eth0
    [[ $link != none ]] || export MASTER_ADDR=127.0.0.1 GLOO_SOCKET_IFNAME=lo
  fi
  if timeout -k 5 "$limit_s" "${run[@]}" "${program[@]}" $arguments --json "$file.new" \
    </dev/null >"$file.log" 2>&1 9>&-; then
    mv "$file.new" "$file" && rm -f "$file.log"
    done_now=$((done_now + 1))
  else
    echo "scaling.sh: $name failed: $(tail -1 "$file.log")" >&2
  fi
done < <(printf '%s\n' "${cells[@]}" | sort -s -k 2,2 -k 3,3n)
echo "$done_now cells of ${#cells[@]} were run in $((SECONDS - began)) s; results are in $out"
