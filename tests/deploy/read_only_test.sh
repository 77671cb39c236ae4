#!/usr/bin/env bash
# deploy/container on a file system that is read-only: fast-pods, fastrun and fast-train write to the shared folder and to
# /dev/shm alone, and fast-health works.   read_only_test.sh FASTRUN FAST_TRAIN
# 77: cannot be done here
set -uo pipefail
files=$(readlink -f "$(dirname "$0")/../../deploy")
[[ $(mpiexec --version 2>/dev/null) == *HYDRA* ]] || { echo "skipped: fast-pods needs the mpiexec of MPICH"; exit 77; }
if [[ -z ${READ_ONLY:-} ]]; then
  [[ $(id -u) -eq 0 ]] || { echo "skipped: read-only mounts need root"; exit 77; }
  unshare -m --propagation private true 2>/dev/null || { echo "skipped: mounts cannot be separated here"; exit 77; }
  directory=$(mktemp -d)
  trap 'rm -rf "$directory"' EXIT
  READ_ONLY=$directory unshare -m --propagation private bash "$(readlink -f "$0")" "$@"
  exit $?
fi
directory=$READ_ONLY
mount -t tmpfs tmpfs "$directory" || { echo "skipped: nothing can be mounted here"; exit 77; }
mountpoint -q /dev/shm || mount -t tmpfs tmpfs /dev/shm
mkdir "$directory/shared" "$directory/bin"
ln -s "$1" "$directory/bin/fastrun"
ln -s "$2" "$directory/bin/fast-train"
while read -r _ place _; do
  [[ $place == /dev/shm || $place == "$directory" || $place == /proc* ]] || mount -o remount,bind,ro "$place" 2>/dev/null
done </proc/self/mounts
for place in / /tmp "$HOME"; do
  ! mktemp "$place/XXXXXX" 2>/dev/null || { echo "skipped: $place stays writable here"; exit 77; }
done
source "$(dirname "$0")/../support/expect.sh"
export PATH="$directory/bin:$files/container:$PATH"

running=()
for i in 0 1; do
  FAST_INDEX=$i FAST_PODS=2 FAST_HOST=127.0.1.@ FAST_SHARED=$directory/shared FAST_DEADLINE=60 timeout -k 5 100 \
    fast-pods fast-train --samples 600 --model mlp --epochs 1 --quiet --checkpoint-every 5 </dev/null >"$directory/out-$i" 2>&1 &
  running+=($!)
done
for i in 0 1; do
  wait "${running[i]}" || { cp "$directory/out-$i" "$directory/output"; report_failure "pod $i: status $?"; }
done
cat "$directory"/out-* >"$directory/output"
grep -qF "test accuracy" "$directory/output" || report_failure "the pods did not train"
grep -qiE "read-only|cannot be written" "$directory/output" && report_failure "the pods write elsewhere"
[[ -s $directory/shared/run/mean-model.safetensors ]] || report_failure "no model"
expect "the health check" 0 "written" -- fast-health "$directory/shared/run"
expect "a run without a folder" 0 "test accuracy" -- fastrun -n 2 fast-train --samples 600 --model mlp --epochs 1 --quiet
echo "$failures failures"
[[ $failures -eq 0 ]]
