#!/usr/bin/env bash
# The study of a residual network on three nodes:  studies/resnet/run.sh [--small] [BIN] [FOLDER]   (build/release/bin, build/resnet)
# Trains a residual network on 1, 2 and 3 hosts with links of 1 Gbit/s: on a ring, without a bound on staleness, and by
# all-reduce. The hosts are network namespaces of this machine (root, iproute2). FOLDER gets the runs, table.md and the
# pictures. Then threads train longer, for the accuracy. Finished runs are not repeated, and one that was stopped goes on from
# its last checkpoint. EPOCHS (2, of the hosts), LONG (50, of the threads; 0: the accuracy is that of the hosts), HOSTS
# ("1 2 3"), SAMPLES (1200) and STEP_MS (1000, of a batch of 100) change the size. MODEL is as fast-train --model has it
# (studies/resnet/residual.toml). If one of them changes, FOLDER must be a new one, else the study ends.
# --small: two hosts, few samples. Needs NumPy and matplotlib.
set -euo pipefail
cd "$(dirname "$0")/../.."
small=
[[ ${1:-} != --small ]] || { small=yes && shift; }
bin=$(readlink -f "${1:-build/release/bin}")
folder=${2:-build/resnet}
hosts=$PWD/tests/hosts/hosts.sh
epochs=${EPOCHS:-2} long=${LONG:-50} samples=${SAMPLES:-1200} tests=400 step_ms=${STEP_MS:-1000} counts=${HOSTS:-1 2 3}
[[ -z $small ]] || { epochs=1 long=1 samples=200 tests=50 step_ms=0 counts="2"; }
model=${MODEL:-studies/resnet/residual.toml}
batch=100 # of all workers together, and the rate .01, as published
batches=$(((samples + batch - 1) / batch))
limit=$((90 + epochs * batches * (4000 + step_ms) / 1000)) # seconds of a run on hosts
why=$("$hosts" check) || { echo "resnet: skipped: $why"; exit 77; }
mkdir -p "$folder"
settings="EPOCHS=$epochs LONG=$long HOSTS=$counts SAMPLES=$samples STEP_MS=$step_ms MODEL=$model"
[[ ! -s $folder/settings || $(<"$folder/settings") == "$settings" ]] || { echo "resnet: $folder has runs of $(<"$folder/settings"); give another FOLDER" >&2; exit 1; }
echo "$settings" >"$folder/settings"
[[ -s $folder/data/color/test_batch.bin ]] || /usr/bin/python3 studies/colored.py "$folder/data" "$samples" $tests
# on_hosts COMMAND...: with three hosts, which are the machine's: tests that wait for them have their turn between runs.
on_hosts() (
  exec 9>/tmp/fasthosts.lock
  flock -w "${HOSTS_WAIT:-600}" 9 || { echo "resnet: others use the hosts of this machine" >&2; exit 1; }
  trap '"$hosts" down' EXIT
  "$hosts" up 3 || exit 1
  why=$("$hosts" rate 1gbit 2>&1) || { echo "resnet: skipped: a link's rate cannot be limited: $why"; exit 77; }
  "$@" 9>&-
)
# fast_train FILE WORKERS EPOCHS COMMAND... -- OPTIONS...: runs fast-train by the command, which writes FILE.json. A run that was
# stopped goes on from its last checkpoint.
fast_train() {
  local run=$1 count=$2 epochs=$3 command=() state=--overwrite
  shift 3
  while [[ $1 != -- ]]; do command+=("$1") && shift; done
  [[ ! -s $run.json ]] || return 0
  echo "${run#"$folder/"}"
  ! compgen -G "$run/checkpoints/round-*/manifest.json" >/dev/null || state="--resume=$run/checkpoints"
  "${command[@]}" "$bin/fast-train" --data "$folder/data/color" --model "$model" --epochs "$epochs" --batch-size $((batch / count)) \
    --lr 0.01 --lr-schedule constant --warmup 0 --seed 1 --quiet --summary-json "$run.json.new" \
    --out "$run" --checkpoint-every 30s "$state" "${@:2}" </dev/null >"$run.log" 2>&1 || { local status=$?; tail -n 2 "$run.log" >&2; exit $status; }
  sed -i "1s/{/{ \"machine_load\": $(cut -d ' ' -f 1 /proc/loadavg), \"state\": \"${state%%=*}\",/" "$run.json.new"
  mv "$run.json.new" "$run.json"
}
# train NAME HOSTS OPTIONS...: one worker on each host.
train() {
  fast_train "$folder/$1.$2" "$2" $epochs on_hosts timeout -k 5 $limit "$hosts" run "$2" -r 1 -- --step-ms $((step_ms / $2)) "${@:3}"
}
# learn NAME WORKERS OPTIONS...: the same on threads of this machine, without pacing.
learn() {
  ((long == 0)) || fast_train "$folder/accuracy/$1.$2" "$2" $long env -- --exchange local --workers "$2" "${@:3}"
}
mkdir -p "$folder/accuracy"
for count in $counts; do
  if ((count == 1)); then
    train alone 1
    continue
  fi
  train ring "$count" --topology ring
  train asynchronous "$count" --topology ring --staleness inf
  train all-reduce "$count" --algorithm allreduce
done
for count in $counts; do
  ((count > 1)) || { learn alone 1 && continue; }
  learn ring "$count" --topology ring
  learn asynchronous "$count" --topology ring --staleness inf
  learn all-reduce "$count" --algorithm allreduce
done
/usr/bin/python3 studies/resnet/table.py "$folder" "$epochs" "$long"
