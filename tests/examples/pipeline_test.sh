#!/usr/bin/env bash
# The pipeline example: bad input, a saved model, and deaths.   pipeline_test.sh MPIEXEC FASTRUN PIPELINE FAST_MODEL
set -uo pipefail
mpiexec=$1 fastrun=$2 pipeline=$3 model=$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# refused TITLE RANKS TEXT -- OPTION...: one line of error, status not 0.
refused() {
  local title=$1 ranks=$2 text=$3
  shift 4
  expect "$title" 1 "error: " "$text" -- "$mpiexec" -n "$ranks" "$pipeline" --steps 2 "$@"
  [[ $(grep -c "error: " "$directory/output") -eq 1 ]] || report_failure "$title: not one error line"
}
refused "ranks and stages" 3 "3 ranks are not divisible by 2 shards; start a multiple of 2, as by  fastrun -n 4" --
refused "a cut that is no layer" 2 "a cut after 99 layers; model lenet5 has 12 layers" -- --cut 99
refused "cuts that decrease" 3 "a cut after 3 layers" -- --cut 7,3
refused "a stage without parameters" 3 "have no parameters" -- --cut 6,7
refused "no number" 2 "--cut: \"x\"" -- --cut x
refused "no option" 2 "--stages: there is no such option" -- --stages 2
refused "no model" 2 "\"vgg\"" -- --model vgg
refused "no rule" 2 "\"mean\"" -- --algorithm mean

# The stages' mean models are one model.
expect "training" 0 "replica 0 of 2: loss " "replica 1 of 2: loss " "% of the test samples right" -- \
  "$mpiexec" -n 4 "$pipeline" --steps 30 --save "$directory/mean.safetensors"
expect "the saved model" 0 "conv1.weight" "fc3.bias" "1x28x28" -- "$model" info "$directory/mean.safetensors"

# Rank 2 is stage 0 of replica 1. It is killed once it trains.
cat >"$directory/rank" <<'END'
#!/usr/bin/env bash
[[ $FASTRUN_RANK != 2 ]] || echo $$ >"$directory/victim"
exec "$@"
END
chmod +x "$directory/rank"
export directory
# killed TITLE STATUS TEXT... -- OPTION...: the same as expect, of a run of 2 x 2 ranks.
killed() {
  local title=$1 status=$2 texts=() found started
  shift 2
  while [[ $1 != -- ]]; do texts+=("$1") && shift; done
  shift
  rm -f "$directory/victim" "$directory/output" # else what the last run printed is taken for this one's
  timeout -k 5 120 "$fastrun" -n 4 "$directory/rank" "$pipeline" --losses --step-ms 100 "$@" \
    </dev/null >"$directory/output" 2>&1 &
  started=$!
  for ((i = 0; i < 600; ++i)); do
    grep -qs "replica 1 step 5 " "$directory/output" && break
    sleep 0.1
  done
  [[ $i -lt 600 ]] || report_failure "$title: no fifth step within 60 s"
  [[ ! -e $directory/victim ]] || kill -9 "$(cat "$directory/victim")"
  wait $started
  found=$?
  [[ $found -eq $status ]] || report_failure "$title: status $found"
  for text in "${texts[@]}"; do
    grep -qF -e "$text" "$directory/output" || report_failure "$title: no \"$text\""
  done
}
killed "a stage is killed" 0 "rank 3: replica 1 of 2 ends: rank 2 was lost; the other replicas go on" \
  "replica 0 step 60 loss" "replica 0 of 2: loss" "2 of 4 ranks ended well" -- --steps 60
grep -qF "replica 1 of 2: loss" "$directory/output" && report_failure "a stage is killed: its replica goes on"
killed "a stage is killed, with a rule that averages over all" 1 "all-reduce: worker 1 is gone" "0 of 4 ranks ended well" -- \
  --steps 60 --algorithm allreduce --deadline 40

# Rank 2 is the last stage of replica 0. It dies of SIGPIPE as it prints the loss of its last step, when the others have made theirs: replica 1
# ends well, and saves the model.
cat >"$directory/mortal" <<'END'
#!/usr/bin/env bash
[[ $FASTRUN_RANK == 2 ]] || exec "$@"
"$@" | head -n 2
kill -9 $$
END
chmod +x "$directory/mortal"
rm -f "$directory/mean.safetensors"
if "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
  echo "skipped: a stage that dies at the end: with Open MPI, ranks ignore SIGPIPE"
else
  expect "a stage dies at the end" 0 "replica 1 of 2: loss " "3 of 6 ranks ended well" -- timeout -k 5 120 "$fastrun" -n 6 --min-workers 3 \
    "$directory/mortal" "$pipeline" --cut 3,7 --losses --steps 3 --step-ms 3000 --batch 4 --micro-batches 4 --save "$directory/mean.safetensors"
  [[ $(grep -c "^rank 0: replica 0 of 2 ends: rank 2 was lost; the other replicas go on$" "$directory/output") -eq 1 ]] ||
    report_failure "a stage dies at the end: not one line"
  expect "the model of the replica that is left" 0 "conv1.weight" "fc3.bias" -- "$model" info "$directory/mean.safetensors"
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
