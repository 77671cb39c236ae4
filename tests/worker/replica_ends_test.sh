#!/usr/bin/env bash
# A rank of a replica is lost or fails: its replica ends alone, or all do, with one line.
#   replica_ends_test.sh MPIEXEC FASTRUN REPLICA_ENDS
set -uo pipefail
mpiexec=$1 fastrun=$2 program=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Rank 3, which notes when its process has gone.
cat >"$directory/rank" <<'END'
#!/usr/bin/env bash
[[ ${FASTRUN_RANK:-} == 3 ]] || exec "$@"
"$@"
status=$?
date +%s.%N >"$directory/ended"
exit $status
END
chmod +x "$directory/rank"
export directory

# The ranks that have ended well, "0145".
ended_well() { grep -oE '^rank [0-9] ended' "$directory/output" | grep -oE '[0-9]' | sort | tr -d '\n'; }

# The mean model of each rank that ended is the mean of the weights of those that ended with its parity.
means_are_right() {
  awk '/^rank [0-9] ended/ { rank[++n] = $2; a[n] = $4; b[n] = $5; p[n] = $7; q[n] = $8 + 0 }
       END { for (i = 1; i <= n; ++i) {
               x = y = k = 0
               for (j = 1; j <= n; ++j) if (rank[i] % 2 == rank[j] % 2) { x += a[j]; y += b[j]; ++k }
               if ((x / k - p[i]) ^ 2 > 1e-24 || (y / k - q[i]) ^ 2 > 1e-24) exit 1
             }
             exit n == 0 }' "$directory/output"
}

# alone TITLE HOW LINE [SECONDS]: replica 1 ends within 10 s by itself, with that line, and the others go on.
alone() {
  local title=$1 how=$2 line=$3 limit=${4:-10}
  rm -f "$directory/began" "$directory/ended"
  expect "$title" 0 "$line" "4 of 6 ranks ended well" -- "$fastrun" -n 6 --min-workers 4 "$directory/rank" "$program" "$how" "$directory"
  [[ $(grep -c "replica 1 of 3 ends" "$directory/output") -eq 1 ]] || report_failure "$title: not one line"
  [[ $(ended_well) == 0145 ]] || report_failure "$title: ranks $(ended_well) ended well"
  ! grep -q "error:" "$directory/output" || report_failure "$title: an error"
  means_are_right || report_failure "$title: other means"
  [[ -s $directory/ended ]] || report_failure "$title: rank 3 has not ended"
  local after
  after=$(awk -v began="$(cat "$directory/began")" '{ print $1 - began }' "$directory/ended")
  echo "$title: the replica ended after $after s"
  awk -v after="$after" -v limit="$limit" 'BEGIN { exit !(after < limit) }' || report_failure "$title: $after s"
}
alone "a rank is killed" kill "rank 3: replica 1 of 3 ends: rank 2 was lost; the other replicas go on"
alone "a rank ends with a status" status "rank 3: replica 1 of 3 ends: rank 2 was lost; the other replicas go on"
alone "a replica is stopped" leave "replica 1 of 3 ends: a rank of it was stopped for long, and its neighbors went on without it; the other replicas go on"
alone "a rank is stopped" hang "rank 3: replica 1 of 3 ends: rank 2 has given no sign of life for 4.5 s; the other replicas go on" 8.5
expect "a rank is stopped for a moment" 0 "rank 2 ended" -- "$fastrun" -n 6 "$program" stop "$directory"
[[ $(ended_well) == 012345 && $(grep -c "rejoined 0" "$directory/output") -eq 6 ]] || report_failure "a rank is stopped for a moment: it has left"
means_are_right || report_failure "a rank is stopped for a moment: other means"
alone "a rank is killed at the end" after "rank 3: replica 1 of 3 ends: rank 2 was lost; the other replicas go on"

# all TITLE HOW TEXT LAUNCHER...: all ranks end soon, with one report.
all() {
  local title=$1 how=$2 text=$3
  shift 3
  rm -f "$directory/began"
  expect "$title" 1 "$text" -- "$@" -n 6 "$program" "$how" "$directory"
  [[ $(grep -c "error: " "$directory/output") -eq 1 ]] || report_failure "$title: not one report"
  [[ -z $(ended_well) ]] || report_failure "$title: ranks $(ended_well) ended well"
  grep -qE "Abort|Assertion|BAD TERMINATION|ends: " "$directory/output" && report_failure "$title: more than a report"
}
for launcher in "$mpiexec" "$fastrun"; do
  name=$(basename "$launcher")
  all "$name, in a step" raise "error: rank 2 of 6: no more batches" "$launcher"
  all "$name, between steps" between "error: rank 2 of 6: no more batches" "$launcher"
  all "$name, on all ranks" together "the shapes do not fit" "$launcher"
  all "$name, on all ranks, by the program" same "the shapes do not fit" "$launcher"
done
expect "a rank is killed, with a rule that averages over all" 1 "all-reduce: worker 1 is gone" "0 of 6 ranks ended well" -- \
  "$fastrun" -n 6 "$program" average_kill "$directory"
[[ $(grep -cE "error: |replica 1 of 3 ends" "$directory/output") -eq 2 ]] || report_failure "a rule that averages over all: not two lines"

echo "$failures failures"
[[ $failures -eq 0 ]]
