#!/usr/bin/env bash
# An exception of the program on one rank ends the job soon, with one report: for each rule and launcher.
#   user_exception_test.sh MPIEXEC FASTRUN USER_EXCEPTION [hosts]     hosts: ranks on two hosts. 77: cannot be done here
# LONGEST=2 sets the seconds that may pass from the exception to the job's end.
set -uo pipefail
mpiexec=$1 fastrun=$2 program=$3
if [[ ${4:-} == hosts ]]; then
  source "$(dirname "$0")/../support/hosts.sh" ""
  "$hosts" up 2
  job_mpiexec=("$hosts" run 2 -r 2) job_fastrun=("$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 4)
else
  source "$(dirname "$0")/../support/expect.sh"
  directory=$(mktemp -d)
  trap 'rm -rf "$directory"' EXIT
  job_mpiexec=("$mpiexec" -n 4) job_fastrun=("$fastrun" -n 4)
fi
longest=${LONGEST:-6} # a busy machine ends processes late

for launcher in mpiexec fastrun; do
  declare -n job=job_$launcher
  for rule in awc allreduce gossip_pga; do
    rm -f "$directory/thrown"
    timeout -k 5 60 "${job[@]}" "$program" $rule "$directory/thrown" </dev/null >"$directory/output" 2>&1 9>&-
    status=$?
    took=$(awk -v now="$(date +%s.%N)" '{ print now - $1 }' "$directory/thrown")
    echo "$launcher, $rule: status $status, the job ended $took s after the exception"
    [[ $status -ne 0 && $status -ne 124 ]] || report_failure "$launcher, $rule: status $status"
    [[ $(grep -c "error:" "$directory/output") -eq 1 ]] || report_failure "$launcher, $rule: not one report"
    grep -q "error: rank 1 of 4: no more batches" "$directory/output" || report_failure "$launcher, $rule: not the cause"
    grep -qE "Abort|Assertion|BAD TERMINATION" "$directory/output" && report_failure "$launcher, $rule: more than a report"
    awk -v took="$took" -v longest="$longest" 'BEGIN { exit !(took < longest) }' || report_failure "$launcher, $rule: $took s"
  done
done
echo "$failures of 6 runs failed"
[[ $failures -eq 0 ]]
