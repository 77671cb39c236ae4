#!/usr/bin/env bash
# Ranks are asked to leave by fastrun's control file.   leave_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

small=(--samples 600 --model mlp --batch-size 10 --suspect-after 80 --epochs 8 --step-ms 8 --quiet)
control=$directory/control
ask() { printf '%s\n' "${lines[@]}" >>"$control"; }

# An epoch has 20 rounds of 3 x 10 samples. Nobody waits the 80 s of --suspect-after.
for way in "1 0" "0 inf"; do
  read -r leaver staleness <<<"$way"
  title="worker $leaver leaves at staleness $staleness"
  run=$directory/run$leaver
  lines=("leave $leaver" "leav 1" "leave 7")
  began=$SECONDS
  expect_on_the_way "$title" "left as asked to              $leaver" "$run/metrics/0.jsonl" ask -- \
    "$fastrun" --control "$control" -n 3 "$train" "${small[@]}" --staleness "$staleness" --out "$run"
  ((SECONDS - began < 70)) || report_failure "$title: it took $((SECONDS - began)) s"
  for text in "rank $leaver is asked to leave" "\"leav 1\" is unknown" "3 ranks (0..2)"; do
    grep -qF "$text" "$directory/output" || report_failure "$title: no \"$text\""
  done
  grep -qE "lost workers|ended well|suspect|no sign of life" "$directory/output" && report_failure "$title: it counts as lost"
  grep '^{"kind":"epoch"' "$run/metrics/$leaver.jsonl" | grep -q '"epoch":8,' && report_failure "$title: it has not left"
  grep "^{\"kind\":\"epoch\"" "$run/metrics/2.jsonl" | tail -n 1 | grep -q "\"epoch\":8," || report_failure "$title: the others end early"
  [[ -e $run/mean-model.safetensors ]] || report_failure "$title: no mean model"
  grep -qE '"event":"left".*"step":[0-9]{1,3}[,}]' "$run/metrics.jsonl" || report_failure "$title: metrics.jsonl does not say so"
  grep -q "metrics of each worker are whole" "$directory/output" && report_failure "$title: metrics are not merged"
done

lines=("leave 0" "leave 1")
expect_on_the_way "the last one stays" "rank 1 cannot leave: 0 would go on" "$directory/last/metrics/0.jsonl" ask -- \
  "$fastrun" --control "$control" -n 2 "$train" "${small[@]}" --out "$directory/last"
lines=("leave 2")
expect_on_the_way "a spare that sleeps leaves" "closing rounds" "$directory/spare/metrics/0.jsonl" ask -- \
  "$fastrun" --control "$control" -n 2 --spares 1 "$train" "${small[@]}" --out "$directory/spare"
expect_on_the_way "all average together" "cannot leave training in round" "$directory/all/metrics/0.jsonl" ask -- \
  "$fastrun" --control "$control" -n 3 "$train" "${small[@]}" --algorithm gossip_pga --out "$directory/all"
expect "no such directory" 1 "--control $directory/none/control cannot be written" -- \
  "$fastrun" --control "$directory/none/control" -n 1 true
echo "$failures failures"
[[ $failures -eq 0 ]]
