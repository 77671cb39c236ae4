#!/usr/bin/env bash
# resnet_runs_test.sh: which runs studies/resnet/run.sh starts. In place of fast-train, hosts and time limits there are
# programs that write down what they are called with. 77: cannot be done here.
set -euo pipefail
source "$(dirname "$0")/stand_ins.sh"
mkdir -p "$place/tree" "$place/data/color"
cp -r "$root/studies" "$place/tree"
echo there >"$place/data/color/test_batch.bin"
program tree/tests/hosts/hosts.sh <<<'[[ $1 != run ]] || exec "${@:5}"'
program path/flock <<<'exit 0'
program path/timeout <<<'echo "$3" >>"$LIMITS" && exec "${@:4}"'
program bin/fast-train <<'END'
echo "$*" >>"$CALLS"
if [[ -e $STOP ]]; then
  while [[ $1 != --out ]]; do shift; done
  mkdir -p "$2/checkpoints/round-1" && touch "$2/checkpoints/round-1/manifest.json" && exit 1
fi
while [[ $1 != --summary-json ]]; do shift; done
echo '{"seconds": 12, "bytes_sent_per_worker_per_round": 0, "test_accuracy_mean_model": 0.5, "test_accuracy_worst_worker": 0.5}' >"$2"
END
export LIMITS=$place/limits CALLS=$place/calls STOP=$place/stop
export PATH=$place/path:$PATH
EPOCHS=50 LONG=50 MODEL=resnet20 "$place/tree/studies/resnet/run.sh" "$place/bin" "$place" >"$place/out" 2>&1 || fail "it failed" "$place/out"

# One worker alone, and 3 exchanges on each of 2 and 3 hosts; the same for the accuracy.
[[ $(grep -c -e '--model resnet20 --epochs 50 ' "$CALLS") == 14 ]] || fail "not 14 runs of resnet20 with 50 epochs" "$CALLS"
for workers in 2 3; do
  for exchange in ring "ring, staleness inf" all-reduce; do
    sed '1,/test accuracy/d' "$place/table.md" | grep -q "^| $workers | $exchange | 50.0 |" || fail "no accuracy of $workers workers, $exchange" "$place/table.md"
  done
done
# 50 epochs of 12 batches, of which one takes at least 1 s on one host.
while read -r seconds; do
  ((seconds > 600)) || fail "too short a limit" "$LIMITS"
done <"$LIMITS"
[[ $(wc -l <"$LIMITS") == 7 ]] || fail "not 7 runs with a limit" "$LIMITS"
# Runs of other settings are not mixed.
! EPOCHS=2 LONG=50 MODEL=resnet20 "$place/tree/studies/resnet/run.sh" "$place/bin" "$place" >"$place/out" 2>&1 || fail "it took runs of other epochs" "$place/out"
grep -q 'has runs of EPOCHS=50 LONG=50 .* MODEL=resnet20; give another FOLDER' "$place/out" || fail "it does not say why" "$place/out"

# A run that was stopped goes on from its checkpoint. Without threads, the accuracy is that of the hosts.
export EPOCHS=20 LONG=0 HOSTS=3
stopped=$place/stopped
mkdir -p "$stopped" && cp -r "$place/data" "$stopped"
touch "$STOP" && rm "$CALLS"
! "$place/tree/studies/resnet/run.sh" "$place/bin" "$stopped" >"$place/out" 2>&1 || fail "a run that fails does not end it" "$place/out"
rm "$STOP"
"$place/tree/studies/resnet/run.sh" "$place/bin" "$stopped" >"$place/out" 2>&1 || fail "it does not go on" "$place/out"
[[ $(wc -l <"$CALLS") == 4 && $(grep -c -- --overwrite "$CALLS") == 3 ]] || fail "not one run begun twice, and two others" "$CALLS"
[[ $(sed -n 2p "$CALLS") == *" --out $stopped/ring.3 "*" --resume=$stopped/ring.3/checkpoints "* ]] || fail "it begins again" "$CALLS"
grep -q '^| 3 | ring | resumed |' "$stopped/table.md" || fail "no row of the resumed run" "$stopped/table.md"
grep -q '^| 3 | all-reduce | 50.0 | 50.0 |' "$stopped/table.md" || fail "no accuracy of hosts" "$stopped/table.md"
