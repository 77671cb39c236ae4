#!/usr/bin/env bash
# Nothing is left in /dev/shm after jobs that are killed while MPI starts, or that MPI aborts; and one error says that /dev/shm
# is too small. In mounts of its own.   left_memory_test.sh MPIEXEC FASTRUN LARGE_GATHER [RUNS] [SEED]      77: cannot be done here
set -uo pipefail
if [[ ${1:-} != --inside ]]; then
  shares=(unshare -m)
  [[ $(id -u) -eq 0 ]] || shares=(unshare -Urm)
  "${shares[@]}" bash -c 'mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm' || { echo "skipped: no mounts can be made" && exit 77; }
  exec "${shares[@]}" bash -c 'mount --make-rprivate / && mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"' - "$0" --inside "$@"
fi
mpiexec=$2 fastrun=$3 gather=$4 runs=${5:-8} seed=${6:-$RANDOM}
[[ $("$mpiexec" --version 2>&1) == *HYDRA* ]] || { echo "skipped: Open MPI keeps its files elsewhere" && exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
echo "seed $seed"
RANDOM=$seed
nothing_is_left() { # TITLE
  local i
  for ((i = 0; i < 100; ++i)); do # ranks that are being killed
    [[ -n $(ls -A /dev/shm) ]] || return 0
    sleep 0.1
  done
  report_failure "$1: left in /dev/shm: $(ls -A /dev/shm)"
  rm -rf /dev/shm/*
}

# What is left of a job of mpiexec goes when the next one starts. These files are as MPICH and UCX name theirs.
touch /dev/shm/mpich_shar_tmpAbCdEf /dev/shm/ucx_shm_posix_1c42002b /dev/shm/other
exec 8<>/dev/shm/ucx_shm_posix_1c42002b # this process has it open
expect "files of an earlier job" 0 "rank 2 of 3 gathered" -- "$mpiexec" -n 3 "$gather" 1
[[ $(ls -A /dev/shm | paste -sd ' ') == "other ucx_shm_posix_1c42002b" ]] || report_failure "files of an earlier job: $(ls -A /dev/shm)"
exec 8>&-
rm -f /dev/shm/other
expect "files that nobody has open" 0 "rank 0 of 1 gathered" -- "$fastrun" -n 1 "$gather" 1
nothing_is_left "files that nobody has open"

# Ranks die while MPI starts.
for ((run = 0; run < runs; ++run)); do
  delay=$(printf '0.%03d' $((RANDOM % 500)))
  timeout -k 5 60 "$fastrun" --start-deadline 0 -n 4 bash -c 'echo $$ >"$1/rank$FASTRUN_RANK"; exec "$2" 1' - "$directory" "$gather" \
    </dev/null >"$directory/output" 2>&1 &
  started=$!
  for ((i = 0; i < 300 && $(ls "$directory"/rank? 2>/dev/null | wc -l) < 4; ++i)); do sleep 0.01; done
  sleep "$delay"
  kill -9 $(cat "$directory"/rank?) 2>/dev/null
  rm -f "$directory"/rank?
  wait $started
  nothing_is_left "killed after $delay s"
done

# MPI aborts: with UCX_TLS, the space is not counted before.
mount -o remount,size=12m /dev/shm
UCX_TLS=all timeout -k 5 60 "$fastrun" -n 4 "$gather" 1 </dev/null >"$directory/output" 2>&1 && report_failure "12 MB for 4 ranks: status 0"
nothing_is_left "MPI aborts"
for launcher in "$mpiexec" "$fastrun"; do
  expect "12 MB for 4 ranks" 1 "error: Environment: /dev/shm has 12.6 MB, MPI needs 17.2 MB for 4 ranks; enlarge it" -- "$launcher" -n 4 "$gather" 1
  [[ $(grep -c "rror" "$directory/output") -eq 1 ]] || report_failure "12 MB for 4 ranks: more than one error"
done
nothing_is_left "too little memory"
echo "left memory: $failures failures"
[[ $failures -eq 0 ]]
