#!/usr/bin/env bash
# A job starts, moves long messages and ends in what containers forbid or make small: reads of other processes' memory,
# /dev/shm, user namespaces, the root file system. A setting that cannot be made here is left out, with the reason.
#   container_settings_test.sh MPIEXEC FASTRUN FAST_TRAIN LARGE_GATHER FORBID_ATTACH      77: no setting can be made
set -uo pipefail
mpiexec=$1 fastrun=$2 train=$3 gather=$4 forbid=$5
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
is_mpich=$([[ $("$mpiexec" --version 2>&1) == *HYDRA* ]] && echo yes)
shares=(unshare -m)
[[ $(id -u) -eq 0 ]] || shares=(unshare -Urm)

# Each setting is a command that runs another one.
in_mounts() { in_mounts=("${shares[@]}" bash -c "mount --make-rprivate / && $1 && exec \"\$@\"" -); }
in_mounts "mount -t tmpfs -o size=64m tmpfs /dev/shm" && small_memory=("${in_mounts[@]}")
in_mounts "mount --bind $directory $directory && mount -o remount,bind,ro /" && read_only=("${in_mounts[@]}")
all_at_once=("$forbid" "${small_memory[@]}" "${read_only[@]}")

made=0
# jobs_end TITLE THRESHOLD WORDS... -- WORDS...: with the first words before the launcher, and the others before each rank
jobs_end() {
  local title=$1 threshold=$2 outside=() texts rank ranks
  shift 2
  while [[ $1 != -- ]]; do outside+=("$1") && shift; done
  shift
  "${outside[@]}" "$@" true 2>"$directory/output" || { echo "left out: $title: $(cat "$directory/output")" && return; }
  made=$((made + 1))
  for ranks in 1 2 4 3; do
    texts=()
    for ((rank = 0; rank < ranks; ++rank)); do texts+=("rank $rank of $ranks gathered"); done
    [[ $is_mpich != yes || $ranks -eq 1 ]] || texts+=("threshold: $threshold")
    expect "$title: mpiexec -n $ranks" 0 "${texts[@]}" -- "${outside[@]}" "$mpiexec" -n $ranks "$@" "$gather" 4
  done
  expect "$title: fastrun" 0 "${texts[@]}" -- "${outside[@]}" "$fastrun" -n $ranks "$@" "$gather" 4
  expect "$title: training" 0 "test accuracy" "workers                       3" -- \
    "${outside[@]}" "$fastrun" -n 3 "$@" "$train" --samples 600 --model mlp --epochs 1 --quiet --topology ring
}
unset UCX_RNDV_THRESH UCX_TLS
jobs_end "no limits" default env -- env
jobs_end "no reads of other processes" 1g "$forbid" -- env
jobs_end "no reads of other processes, by UCX" 1g env UCX_TLS=^cma -- env
jobs_end "a user namespace for each rank" 1g env -- unshare -Ur
jobs_end "/dev/shm of 64 MB" default "${small_memory[@]}" -- env
jobs_end "a read-only root" default "${read_only[@]}" -- env
jobs_end "all of these" 1g "${all_at_once[@]}" -- unshare -Ur
[[ $made -gt 0 ]] || exit 77

notes="processes here cannot read each other's memory"
[[ $is_mpich != yes ]] || expect "doctor without reads of other processes" 0 "note  $notes" "UCX_RNDV_THRESH=1g" -- "$forbid" "$fastrun" --doctor -n 1
expect "doctor" 0 "ok    " -- "$fastrun" --doctor -n 1
grep -qF "$notes" "$directory/output" && report_failure "doctor: processes can read each other's memory here"
if "${small_memory[@]}" true 2>/dev/null; then
  expect "doctor of 14 ranks in 64 MB" 1 "FIX   /dev/shm has 64 MiB free: models of up to 0." "with 14 ranks here" "enlarge it" -- \
    "${small_memory[@]}" "$fastrun" --doctor -n 14
  expect "doctor of 16 ranks in 64 MB" 1 "FIX   /dev/shm has 64 MiB free: MPI cannot start with 16 ranks" -- "${small_memory[@]}" "$fastrun" --doctor -n 16
fi
echo "container settings: $failures failures"
[[ $failures -eq 0 ]]
