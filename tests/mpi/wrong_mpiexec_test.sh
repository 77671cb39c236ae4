#!/usr/bin/env bash
# Ranks that the mpiexec of another MPI has started end at once, and one of them says why.   wrong_mpiexec_test.sh PROGRAM
set -uo pipefail
program=$1
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
[[ ! -s $directory/output ]] || tell_failure "rank 1: the message appears more than once"
[[ $failures -eq 0 ]]
