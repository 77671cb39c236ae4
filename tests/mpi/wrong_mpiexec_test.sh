#!/usr/bin/env bash
# Ranks that the mpiexec of another MPI has started end at once, and one of them says why.
#   wrong_mpiexec_test.sh PROGRAM OWN_INIT       the latter initializes MPI itself
set -uo pipefail
program=$1 own_init=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

if mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI"; then
  other=MPICH own="Open MPI"
  rank_of_other() { echo "PMI_RANK=$1 PMI_SIZE=3"; }
else
  other="Open MPI" own=MPICH
  rank_of_other() { echo "OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=3"; }
fi
expect "rank 0" 1 "error: Environment: the mpiexec of $other started 3 ranks, but each of them is alone: this program's MPI is $own" \
  "by the mpiexec of that MPI" -- env $(rank_of_other 0) "$program"
expect "rank 1" 1 -- env $(rank_of_other 1) "$program"
[[ ! -s $directory/output ]] || report_failure "rank 1: the message appears more than once"
expect "MPI is there already" 1 "each of them is alone" -- env $(rank_of_other 0) "$own_init" multiple
grep -qF worked "$directory/output" && report_failure "MPI is there already: it goes on"

# An mpiexec that ends all ranks when one has ended with an error, as Open MPI's does. Rank 0 is the last one.
start() {
  local first
  env $(rank_of_other 1) "$program" &
  first=$!
  sleep 0.3
  env $(rank_of_other 0) "$program" &
  wait $first
  kill -KILL $! 2>/dev/null
  return 1
}
export -f start rank_of_other
export program
expect "all end when one has ended" 1 "each of them is alone" -- bash -c start
[[ $failures -eq 0 ]]
