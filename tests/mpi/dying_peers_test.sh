#!/usr/bin/env bash
# A worker lives on when workers die which it reads and which read it, or with which it exchanges
# messages, over TCP.
#   dying_peers_test.sh FASTRUN DYING_PEERS DYING_RECEIVER [RUNS] [SEED]        77: cannot be done here
set -uo pipefail
fastrun=$1 program=$2 receiver=$3 runs=${4:-6} seed=${5:-$RANDOM}
if mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI"; then
  echo "skipped: a rank of Open MPI 4.1 may hang when a rank dies with which it has a TCP connection" && exit 77
fi
[[ -z $(ls /sys/class/infiniband 2>/dev/null) ]] || { echo "skipped: reads go by RDMA here"; exit 77; }
export MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self # ranks of one host as if each had a host of its own, with MPICH
echo "seed $seed"
failures=0
output=$(mktemp)
for ((run = 0; run < runs; ++run)); do
  for how in reads messages; do
    timeout -k 5 30 "$fastrun" -n 4 "$program" $how $((seed + run)) </dev/null >"$output" 2>&1
    grep -q "1 of 4 ranks ended well" "$output" && continue
    failures=$((failures + 1))
    echo "$how, seed $((seed + run)):" && head -n 20 "$output"
  done
done
for how in "" unread; do
  timeout -k 5 60 "$fastrun" -n 3 "$receiver" $how </dev/null >"$output" 2>&1
  grep -q "2 of 3 ranks ended well" "$output" && grep -q "PointToPoint: rank 1 has ended; a message to it is lost" "$output" ||
    { failures=$((failures + 1)) && echo "a receiver dies $how:" && head -n 20 "$output"; }
done
rm -f "$output"
echo "$failures of $((2 * runs + 2)) runs failed"
[[ $failures -eq 0 ]]
