#!/usr/bin/env bash
# A function of a model in C fails on one of three ranks: all end soon, with one line and status 1.   failing_rank_test.sh MPIEXEC PROGRAM
set -uo pipefail
for where in train evaluate; do
  said=$(timeout -k 5 90 "$1" -n 3 "$2" "$where" 2>&1) # the others' deadline is 300 s
  status=$?
  ((status != 0 && status != 124 && status != 137)) || { echo "$where: status $status: $said"; exit 1; }
  [[ $(grep -c "caller's function returned" <<<"$said") == 1 ]] || { echo "$where: not one line: $said"; exit 1; }
done
