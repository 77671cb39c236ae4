#!/usr/bin/env bash
# The study of training on several nodes:  studies/multinode/run.sh [--small] [BIN] [FOLDER]   (build/release/bin, build/multinode)
# Trains a bottleneck network on 1, 2 and 3 hosts with 1, 2 and 4 workers each: with neighbors on a ring, by all-reduce, and by
# PyTorch's DistributedDataParallel (skipped where torch is missing). FOLDER gets the runs, table.md and the picture. Finished
# runs are not repeated. Hosts are network namespaces of this machine with links of 1 Gbit/s (root, iproute2).
#   --machines FILE             real hosts in their place, one a line; FOLDER must be shared by them
#   --device DEVICE             of fast-train and of DDP: cpu, or cuda
# HOSTS ("1 2 3"), WORKERS ("1 2 4", on each host), ROUNDS (20), BATCH (8, of a worker), STEP_MS (200; 0: steps are not paced),
# RATE (1gbit, of a link), MODEL (bottleneck.toml) change the study.
# --small: one host, one and two workers, few rounds. Needs NumPy and matplotlib.
set -euo pipefail
cd "$(dirname "$0")/../.."
small= machines= device=cpu
while [[ ${1:-} == --* ]]; do
  case $1 in
  --small) small=yes && shift ;;
  --machines) machines=$(readlink -f "${2:?}") && shift 2 ;;
  --device) device=${2:?} && shift 2 ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
bin=$(readlink -f "${1:-build/release/bin}")
folder=${2:-build/multinode}
counts=${HOSTS:-1 2 3} workers=${WORKERS:-1 2 4} rounds=${ROUNDS:-20} batch=${BATCH:-8} step_ms=${STEP_MS:-200} rate=${RATE:-1gbit}
model=${MODEL:-studies/multinode/bottleneck.toml}
[[ -z $small ]] || { counts=1 workers="1 2" rounds=5 step_ms=40; }
hosts=$PWD/tests/hosts/hosts.sh
[[ -n $machines || $counts == 1 ]] || why=$("$hosts" check) || { echo "multinode: skipped: $why"; exit 77; }
mkdir -p "$folder"
[[ -s $folder/data/color/test_batch.bin ]] || /usr/bin/python3 studies/colored.py "$folder/data" 2000 50

# on_hosts HOSTS WORKERS COMMAND...: the hosts are the machine's: tests that wait for them have their turn between runs.
on_hosts() (
  exec 9>/tmp/fasthosts.lock
  flock -w "${HOSTS_WAIT:-600}" 9 || { echo "multinode: others use the hosts of this machine" >&2; exit 1; }
  trap '"$hosts" down' EXIT
  "$hosts" up "$1" || exit 1
  why=$("$hosts" rate "$rate" 2>&1) || { echo "multinode: skipped: a link's rate cannot be limited: $why"; exit 77; }
  MASTER_ADDR=10.99.0.1 GLOO_SOCKET_IFNAME=eth0 timeout -k 5 100 "$hosts" run "$1" -r "${@:2}" 9>&-
)
# launch HOSTS WORKERS COMMAND...: so many workers on each host.
launch() {
  local count=$1 each=$2
  shift 2
  if [[ -n $machines ]]; then
    head -n "$count" "$machines" >"$folder/machines.$count"
    MASTER_ADDR=$(head -n 1 "$machines" | cut -d: -f1) timeout -k 5 600 mpiexec -f "$folder/machines.$count" -n $((count * each)) -ppn "$each" "$@"
  elif ((count == 1)); then
    timeout -k 5 100 mpiexec -n "$each" "$@"
  else
    on_hosts "$count" "$each" "$@"
  fi
}
# once NAME COMMAND...: the command writes FOLDER/NAME.json.new.
once() {
  local file=$folder/$1.json status=0
  shift
  [[ ! -s $file ]] || return 0
  basename "$file" .json
  "$@" </dev/null >"$file.log" 2>&1 || { status=$?; tail -n 2 "$file.log" >&2; exit $status; }
  sed -i "1s/{/{ \"machine_load\": $(cut -d ' ' -f 1 /proc/loadavg),/" "$file.new"
  mv "$file.new" "$file"
}
# train NAME HOSTS WORKERS OPTIONS...: two epochs, of which the second counts.
train() {
  local name=$1.$2.$3 count=$2 each=$3
  shift 3
  once "$name" launch "$count" "$each" "$bin/fast-train" --data "$folder/data/color" --model "$model" --device "$device" --epochs 2 \
    --samples $((rounds * batch * count * each)) --batch-size "$batch" --lr 0.01 --lr-schedule constant --warmup 0 --seed 1 --quiet \
    --step-ms "$pace" --out "$folder/$name" --overwrite --summary-json "$folder/$name.json.new" "$@"
}
torch=yes
/usr/bin/python3 -c 'import torch' 2>/dev/null || { torch= && echo "multinode: DDP is skipped: apt-get install python3-torch"; }
# ddp HOSTS WORKERS: the same with PyTorch, if it is there.
ddp() {
  [[ -n $torch ]] || return 0
  once "ddp.$1.$2" launch "$1" "$2" /usr/bin/python3 studies/multinode/ddp.py --data "$folder/data/color" --model "$model" \
    --batch-size "$batch" --rounds "$rounds" --step-ms "$pace" --device "$device" --json "$folder/ddp.$1.$2.json.new"
}
pace=0
train unpaced 1 1
pace=$step_ms
train alone 1 1
ddp 1 1
for count in $counts; do
  for each in $workers; do
    ((count * each > 1)) || continue
    train ring "$count" "$each" --topology ring
    train all-reduce "$count" "$each" --algorithm allreduce
    ddp "$count" "$each"
  done
done
/usr/bin/python3 studies/multinode/table.py "$folder"
