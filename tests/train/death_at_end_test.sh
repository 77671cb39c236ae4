#!/usr/bin/env bash
# A rank is killed after the last round, in a collective call of MPI: the others end as after any death that they survive.
#   death_at_end_test.sh FASTRUN FAST_TRAIN DIES_IN_CALL [SEED]      EVERY_CALL=1: in each of these calls, not in drawn ones
set -uo pipefail
fastrun=$1 train=$2 library=$3 seed=${4:-$RANDOM}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
cat >"$directory/rank" <<EOR
#!/usr/bin/env bash
LD_PRELOAD=$library exec "\$@"
EOR
chmod +x "$directory/rank"
echo "seed $seed"
RANDOM=$seed
training=("$fastrun" -n 4 --min-workers 3 "$directory/rank" "$train" --samples 400 --model mlp:8 --batch-size 20 --epochs 1 --quiet)

# count_calls KIND VICTIM OPTION...: sets $count to the calls of a run in which nobody dies.
count_calls() {
  local kind=$1 victim=$2
  shift 2
  expect "nobody dies" 0 -- env DIES_IN="$kind" DIES_RANK="$victim" DIES_AT=0 DIES_COUNT="$directory/count" "${training[@]}" "$@"
  count=$(cat "$directory/count")
}

# dies KIND VICTIM CALL: one message of the death, one summary, and no error.
dies() {
  local kind=$1 victim=$2 call=$3 title="rank $2 dies in call $3 of $last ($1)"
  expect "$title" 0 "3 of 4 ranks ended well" -- env DIES_IN="$kind" DIES_RANK="$victim" DIES_AT="$call" "${training[@]}"
  [[ $(grep -c "rank $victim .*died" "$directory/output") -eq 1 && $(grep -c "died" "$directory/output") -eq 1 ]] ||
    report_failure "$title: not one message of the death"
  ! grep -q "error: " "$directory/output" || report_failure "$title: errors"
  grep -q "test accuracy, mean model" "$directory/output" || report_failure "$title: no summary"
}

# First the moment after the last meeting. Then the calls of the closing rounds' Worker, and those after it.
for victim in 0 2; do
  count_calls left $victim
  last=$count
  dies left $victim "$last"
  for kind in meeting window; do
    count_calls $kind $victim --closing-rounds 0
    without=$count
    count_calls $kind $victim
    last=$count
    after=$([[ $kind == meeting ]] && echo 6 || echo 0)
    first=$((without - after + 1))
    echo "rank $victim: calls $first to $last of a $kind"
    calls=($(seq $first "$last"))
    [[ -n ${EVERY_CALL:-} ]] || calls=($(shuf -e "${calls[@]}" --random-source=<(yes "$RANDOM") -n $((after / 2 + 1))))
    for call in "${calls[@]}"; do dies $kind $victim "$call"; done
  done
done
echo "$failures failures"
[[ $failures -eq 0 ]]
