#!/usr/bin/env bash
# Spares join by fastrun's control file and by its clock.   grow_test.sh FASTRUN FAST_TRAIN joins|requests
set -uo pipefail
fastrun=$1 train=$2 part=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

small=(--samples 600 --model mlp --batch-size 10 --suspect-after 20 --epochs 40 --step-ms 5 --quiet)
control=$directory/control
ask() { printf '%s\n' "${lines[@]}" >>"$control"; }
# epochs FILE: of metrics.
epochs() { grep -c '^{"kind":"epoch"' "$1"; }

joins() {
  # An epoch has 20 rounds of 3 x 10 samples, then 15 of 4 x 10. Nobody waits the 20 s of --suspect-after.
  for way in "awc 0" "atc 2" "d2 0"; do
    read -r rule staleness <<<"$way"
    title="a spare joins, $rule at staleness $staleness"
    run=$directory/run-$rule
    lines=("grow" "grow up" "grow")
    expect_on_the_way "$title" "joined as asked to            3" "$run/metrics/0.jsonl" ask -- \
      "$fastrun" --control "$control" -n 3 --spares 1 "$train" "${small[@]}" --algorithm "$rule" --staleness "$staleness" \
      --out "$run" --checkpoint-every 100
    for text in "a spare is asked to join" "\"grow up\" is unknown" "no spare is left that could join"; do
      grep -qF "$text" "$directory/output" || report_failure "$title: no \"$text\""
    done
    grep -qE "lost workers|replaced|ended well|suspect|no sign of life|could not be read" "$directory/output" &&
      report_failure "$title: something went wrong"
    [[ $(epochs "$run/metrics/0.jsonl") -eq 40 ]] || report_failure "$title: worker 0 has $(epochs "$run/metrics/0.jsonl") epochs"
    grep '^{"kind":"epoch"' "$run/metrics/3.jsonl" | tail -n 1 | grep -q '"epoch":40,' || report_failure "$title: the newcomer ends early"
    (($(epochs "$run/metrics/3.jsonl") < 40)) || report_failure "$title: the newcomer was there from the beginning"
    [[ $(tail -qn 1 "$run"/metrics/[0-3].jsonl | grep -o '"step":[0-9]*' | sort -u | wc -l) -eq 1 ]] ||
      report_failure "$title: workers end in different rounds"
    [[ $staleness -gt 0 ]] || grep -q '"waits":{[^}]*"3":' "$run"/metrics/[12].jsonl ||
      report_failure "$title: the newcomer's neighbors do not tell their waits for it"
    grep -q '"event":"joined"' "$run/metrics.jsonl" || report_failure "$title: metrics.jsonl does not say so"
    [[ -e $run/mean-model.safetensors ]] || report_failure "$title: no mean model"
    distance=$(grep "consensus distance" "$directory/output" | grep -o "[0-9.e+-]*$")
    # Workers that do not read each other end 10 and more apart; the learning rate ends at 0.
    [[ $staleness -gt 0 ]] || awk "BEGIN { exit !($distance < 0.01) }" || report_failure "$title: the workers end apart"
    newest=$(find "$run/checkpoints" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)
    [[ $(find "$newest" -name 'worker-*.safetensors' | wc -l) -eq 4 ]] || report_failure "$title: a checkpoint lacks a worker"
  done

  # The growth's round is the end of an epoch, where a checkpoint is due: it has the newcomer's file, too.
  run=$directory/run-saved
  expect "a checkpoint in the growth's round" 0 "joined as asked to            3" -- "$fastrun" --grow-at 0.3 -n 3 --spares 1 \
    "$train" "${small[@]}" --out "$run" --checkpoint-every 20 --keep 100
  grown_in=$(sed -n 's/.*joins in round \([0-9]*\).*/\1/p' "$directory/output" | head -n 1)
  ((grown_in > 0 && grown_in % 20 == 0)) || report_failure "a checkpoint in the growth's round: it is round \"$grown_in\""
  [[ $(find "$run/checkpoints/round-$(printf %012d "$((10#0$grown_in))")" -name 'worker-*.safetensors' | wc -l) -eq 4 ]] ||
    report_failure "a checkpoint in the growth's round lacks a worker"

  # A checkpoint of more workers than the run began with is resumed by as many.
  expect "resumed by four" 0 "closing rounds" -- "$fastrun" -n 4 "$train" "${small[@]}" --epochs 41 \
    --resume "$directory/run-awc/checkpoints" --out "$directory/resumed"
  grep -q "resuming from round" "$directory/resumed/logs/0.log" || report_failure "resumed by four: it is not"
}

requests() {
  # Rank 1 is suspended before the growth's round and comes back after it: it takes its place among the others. The one spare is
  # on the new seat by then.
  cat >"$directory/rank" <<'EOS'
#!/usr/bin/env bash
echo $$ >"$directory/process$FASTRUN_RANK"
exec "$@"
EOS
  chmod +x "$directory/rank"
  export directory
  run=$directory/run-away
  sleep_through_growth() {
    echo grow >>"$control"
    sleep 0.3
    kill -STOP "$(cat "$directory/process1")"
    for ((i = 0; i < 300; ++i)); do
      grep -q "joins in round" "$directory/output" && break
      sleep 0.1
    done
    sleep 0.3 # into an epoch
    kill -CONT "$(cat "$directory/process1")"
  }
  expect_on_the_way "a worker is away when the run grows" "joined as asked to            3" "$run/metrics/0.jsonl" sleep_through_growth -- \
    "$fastrun" --control "$control" -n 3 --spares 1 "$directory/rank" "$train" "${small[@]}" --suspect-after 2 --step-ms 50 --epochs 12 \
    --out "$run"
  grep -q "has taken over their average" "$directory/output" || report_failure "a worker is away when the run grows: it was not left behind"
  [[ $(tail -qn 1 "$run"/metrics/[0-3].jsonl | grep -o '"step":[0-9]*' | sort -u | wc -l) -eq 1 ]] ||
    report_failure "a worker is away when the run grows: workers end in different rounds"

  # A newcomer begins with the first exchange after the growth's round. A run that is asked to stop between the two stops there. With
  # the newcomer, an epoch has 15 rounds. A slow worker 0, which settles the round, has not come to the growth then.
  has_grown() { grep '^{"kind":"epoch"' "$1" | grep -o '"step":[1-9][0-9]*' | cut -d: -f2 | awk '{ d = $1 - last; last = $1 } END { exit d != 15 }'; }
  stop_after_growth() {
    for ((i = 0; i < 1000; ++i)); do
      has_grown "$run/metrics/1.jsonl" && break
      sleep 0.02
    done
    kill -TERM "$(cat "$directory/process0")"
  }
  for slow in 1 2; do
    title="a stop between a growth and the exchange, worker 0 $slow times as slow"
    run=$directory/run-stopped-$slow
    expect_on_the_way "$title" "to be resumed" "$run/metrics/1.jsonl" stop_after_growth -- \
      "$fastrun" --grow-at 0.3 -n 3 --spares 1 "$directory/rank" "$train" "${small[@]}" --step-ms 20 --slow "0:$slow" --epochs 99 \
      --mix-every 130 --out "$run" --checkpoint-every 100000
    newest=$(find "$run/checkpoints" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)
    (($((10#${newest##*round-})) % 130 == 0)) || report_failure "$title: it is saved in ${newest##*/}"
    [[ $(find "$newest" -name 'worker-*.safetensors' | wc -l) -eq 4 ]] || report_failure "$title: the checkpoint lacks a worker"
  done

  expect "by the clock, two" 0 "joined as asked to            2, 3" -- \
    "$fastrun" --grow-at 0.3 --grow-at 0.5 -n 2 --spares 2 "$train" "${small[@]}"

  # An epoch has 30 rounds, with a third worker 20. It would begin in round 52, after the end.
  expect "no combination is left for a newcomer" 0 "a spare is asked to join" "closing rounds" -- "$fastrun" --grow-at 0.3 -n 2 --spares 1 \
    "$train" "${small[@]}" --step-ms 50 --epochs 2 --algorithm local --algorithm-option period=26
  grep -qE "joined as asked|lost workers" "$directory/output" && report_failure "no combination is left for a newcomer: a spare has joined"

  # refused TITLE TEXT OPTIONS...: no spare joins, and training goes on.
  refused() {
    local title=$1 text=$2
    shift 2
    expect "$title" 0 "$text" "closing rounds" -- "$fastrun" --grow-at 0.2 "$@"
    [[ $(grep -cF "$text" "$directory/output") -eq 1 ]] || report_failure "$title: the reason is there more than once"
    grep -q "joined as asked" "$directory/output" && report_failure "$title: a spare has joined"
  }
  refused "no such topology" "no worker can join: " -n 4 --spares 1 "$train" "${small[@]}" --epochs 20 --topology hypercube
  # A request that the workers refuse holds no spare back: fastrun passes the next one on.
  control=$directory/control-of-refused
  ask_twice() {
    echo grow >>"$control"
    for ((i = 0; i < 300; ++i)); do grep -q "no worker can join: " "$directory/output" && break || sleep 0.1; done
    sleep 0.5 # fastrun hears of it by another way
    echo grow >>"$control"
  }
  expect_on_the_way "asked again after a refusal" "closing rounds" "$directory/refused/metrics/0.jsonl" ask_twice -- \
    "$fastrun" --control "$control" -n 4 --spares 1 "$train" "${small[@]}" --epochs 120 --topology hypercube --out "$directory/refused"
  [[ $(grep -c "a spare is asked to join" "$directory/output") -eq 2 ]] || report_failure "asked again after a refusal: it is not passed on"
  refused "running sums" "sends running sums over edges that must stay" -n 3 --spares 1 "$train" "${small[@]}" --epochs 20 \
    --algorithm push_sum --staleness 2

  expect "more often than spares" 2 "--grow-at is given 2 times, --spares is 1" -- \
    "$fastrun" --grow-at 1 --grow-at 2 -n 2 --spares 1 true
  expect "without spares" 2 "--grow-at is given 1 times, --spares is 0" -- "$fastrun" --grow-at 1 -n 2 true
  lines=("grow")
  expect_on_the_way "grow without spares" "no spare is left that could join" "$directory/none/metrics/0.jsonl" ask -- \
    "$fastrun" --control "$control" -n 2 "$train" "${small[@]}" --out "$directory/none"
}
"$part"
echo "$failures failures"
[[ $failures -eq 0 ]]
