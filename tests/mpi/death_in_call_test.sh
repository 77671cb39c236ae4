#!/usr/bin/env bash
# A rank is killed in a call of MPI that blocks, where a Worker makes its memory: one error ends the others.
#   death_in_call_test.sh FASTRUN WINDOWS_AFTER_DEATH DIES_IN_CALL
set -uo pipefail
fastrun=$1 windows=$2 library=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
cat >"$directory/rank" <<EOR
#!/usr/bin/env bash
LD_PRELOAD=$library exec "\$@"
EOR
chmod +x "$directory/rank"

# The first window is that of all four ranks, of whom rank 3 dies. The others make Workers.
for victim in 0 2; do
  expect "rank $victim dies" 1 -- env DIES_IN=window DIES_RANK=$victim DIES_AT=4 "$fastrun" -n 4 "$directory/rank" "$windows" 20
  errors=$(grep -c "error: " "$directory/output")
  [[ $errors -eq 1 ]] || report_failure "rank $victim dies: $errors errors"
  grep -q "error: .*rank $victim of 3 ended before this" "$directory/output" || report_failure "rank $victim dies: no such error"
done
echo "$failures failures"
[[ $failures -eq 0 ]]
