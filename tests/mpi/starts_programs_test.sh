#!/usr/bin/env bash
# A program that a rank starts is no rank: it says so, and training goes on. Ranks of an mpiexec that a rank starts are.
#   starts_programs_test.sh PROGRAM FASTRUN
set -uo pipefail
program=$1 fastrun=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# expect_lines TITLE LINES: those that begin with "rank" or "child", sorted.
expect_lines() {
  [[ $(grep -oE '(rank|child) [0-9] of [0-9] ended, [0-9]' "$directory/output" | sort) == "$2" ]] ||
    report_failure "$1: other lines than $2"
}
refused="error: Environment: this process was started by rank 0 of 2 (process "
for launcher in mpiexec "$fastrun"; do
  name=$(basename "$launcher")
  expect "$name: a program" 0 "$refused" "or start this program by mpiexec -n 1" -- \
    timeout 60 "$launcher" -n 2 "$program" "$program"
  expect_lines "$name: a program" $'rank 0 of 2 ended, 1\nrank 1 of 2 ended, 0'
  # As Python's subprocess starts it: without the rank's descriptors.
  closing="for fd in {3..60}; do eval \"exec \$fd>&-\"; done; exec '$program'"
  expect "$name: without descriptors" 0 "$refused" -- timeout 60 "$launcher" -n 2 "$program" "bash -c '${closing//\'/\'\\\'\'}'"
  expect_lines "$name: without descriptors" $'rank 0 of 2 ended, 1\nrank 1 of 2 ended, 0'
  [[ $(mpiexec --version 2>/dev/null) == *HYDRA* ]] || continue # Open MPI starts no jobs from its ranks
  expect "$name: mpiexec" 0 -- timeout 60 "$launcher" -n 2 "$program" "mpiexec -n 3 '$program'"
  expect_lines "$name: mpiexec" $'child 0 of 3 ended, 0\nchild 1 of 3 ended, 0\nchild 2 of 3 ended, 0\nrank 0 of 2 ended, 0\nrank 1 of 2 ended, 0'
done
[[ $(mpiexec --version 2>/dev/null) == *HYDRA* ]] || exit "$((failures > 0))"
# A process that is alone has no place that others could take. With Open MPI, it is a job.
expect "alone" 0 -- timeout 60 "$program" "$program"
expect_lines "alone" $'child 0 of 1 ended, 0\nrank 0 of 1 ended, 0'
[[ $failures -eq 0 ]]
