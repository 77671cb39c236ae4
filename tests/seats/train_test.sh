#!/usr/bin/env bash
# fast-train with spares: needed or not, refused options, a resumed run.   train_test.sh FASTRUN FAST_TRAIN MPIEXEC FAST_TRACE
set -uo pipefail
fastrun=$1 train=$2 mpiexec=$3 trace=$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Ranks of $victims tell their processes, to be killed.
cat >"$directory/rank" <<'EOS'
#!/usr/bin/env bash
[[ " $victims " != *" $FASTRUN_RANK "* ]] || echo $$ >"$directory/victim$FASTRUN_RANK"
exec "$@"
EOS
chmod +x "$directory/rank"
kill_victims() { kill -9 $(cat "$directory"/victim*) && rm "$directory"/victim*; }
terminate() { kill -TERM "$(pgrep -P "$1")"; }
small=(--samples 600 --model mlp --batch-size 10 --suspect-after 1 --quiet)
export directory victims=""

expect "no spare is needed" 0 "test accuracy" "workers                       3" "closing rounds                1" -- \
  "$fastrun" -n 3 --spares 1 "$train" "${small[@]}" --epochs 1
grep -q "replaced" "$directory/output" && report_failure "no spare is needed: one was used"
expect "as many spares as ranks" 2 "--spares 2: 2 ranks were started" -- "$mpiexec" -n 2 "$train" "${small[@]}" --spares 2
expect "averages over all" 2 "1 spares with algorithm gossip_pga" -- \
  "$mpiexec" -n 3 "$train" "${small[@]}" --epochs 1 --spares 1 --algorithm gossip_pga
[[ $(grep -c "error:" "$directory/output") -eq 1 ]] || report_failure "averages over all: the error is there more than once"

# has_last_epoch FILE: of metrics, whose worker has made all 12 epochs.
has_last_epoch() { grep '^{"kind":"epoch"' "$1" | tail -n 1 | grep -q '"epoch":12,"step":240,'; }

# An epoch has 20 rounds of 3 x 10 samples. Worker 0 dies, too, whose rank speaks for the run.
for victims in 1 0; do
  run=("$directory/rank" "$train" "${small[@]}" --epochs 12 --step-ms 20 --out "$directory/run$victims" --checkpoint-every 100 --trace)
  expect_on_the_way "rank $victims is killed" "replaced by spares            $victims; 10 samples used again" \
    "$directory/run$victims/metrics/0.jsonl" kill_victims -- "$fastrun" -n 3 --spares 1 "${run[@]}"
  grep -q "lost workers" "$directory/output" && report_failure "rank $victims is killed: a seat is empty"
  has_last_epoch "$directory/run$victims/metrics/$victims.jsonl" ||
    report_failure "rank $victims is killed: its seat's metrics end early"
  # The worker before the spare has made some 25 rounds of 240.
  "$trace" summary "$directory/run$victims" >"$directory/output" 2>&1
  awk -v seat="$victims" '$1 == seat && $2 ~ /^[0-9]+$/ { rounds = $2 } END { exit !(rounds > 150) }' "$directory/output" ||
    report_failure "rank $victims is killed: its seat's timeline lacks rounds"
  [[ $(find "$directory/run$victims/checkpoints" -path '*200*' -name 'worker-*.safetensors' | wc -l) -eq 3 ]] ||
    report_failure "rank $victims is killed: the last checkpoint lacks a worker ($(find "$directory/run$victims/checkpoints"))"
done

# The spare cannot write the seat's metrics: it leaves, and the others go on.
victims="1"
spoil() {
  rm "$directory/spoilt/metrics/1.jsonl" && mkdir "$directory/spoilt/metrics/1.jsonl"
  kill_victims
}
run=("$directory/rank" "$train" "${small[@]}" --epochs 8 --step-ms 20 --out "$directory/spoilt")
expect_on_the_way "a spare that fails" "lost workers                  1" "$directory/spoilt/metrics/1.jsonl" spoil -- "$fastrun" -n 3 --spares 1 "${run[@]}"
for text in "metrics/1.jsonl cannot be written" "2 of 4 ranks ended well"; do
  grep -qF "$text" "$directory/output" || report_failure "a spare that fails: no \"$text\""
done

# A run that is stopped and resumed; then a worker dies, when the checkpoint is not there any more.
victims=""
run=("$directory/rank" "$train" "${small[@]}" --epochs 12 --step-ms 20 --out "$directory/resumed" --checkpoints "$directory/saved")
expect_on_the_way "stopped" "stopped after" "$directory/resumed/metrics/0.jsonl" terminate -- "$fastrun" -n 3 --spares 1 "${run[@]}"
victims="2"
before=$(results "$directory/resumed/metrics/2.jsonl")
grown() {
  for ((i = 0; i < 300 && $(results "$directory/resumed/metrics/2.jsonl") <= before; ++i)); do sleep 0.1; done
  rm -r "$directory"/saved/round-*
  kill_victims
}
expect_on_the_way "resumed" "replaced by spares            2; 10 samples used again" "$directory/resumed/metrics/2.jsonl" grown -- \
  "$fastrun" -n 3 --spares 1 "${run[@]}" --resume "$directory/saved"
has_last_epoch "$directory/resumed/metrics/2.jsonl" || report_failure "resumed: the seat's metrics end early"
echo "$failures failures"
[[ $failures -eq 0 ]]
