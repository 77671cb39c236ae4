#!/usr/bin/env bash
# Runs of fast-train that are told to stop, or whose disk is full: what is saved, and how they end.
#   stop_test.sh FASTRUN FAST_TRAIN MPIEXEC
set -uo pipefail
fastrun=$1 train=$2 mpiexec=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Ranks that write down their process numbers.
cat >"$directory/rank" <<'EOF'
#!/usr/bin/env bash
echo $$ >"$directory/pid${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}"
exec "$@"
EOF
chmod +x "$directory/rank"
export directory
long=(--samples 2000 --model mlp --batch-size 20 --epochs 2000 --quiet --step-ms 10 --summary-json "$directory/summary.json")

# stopped TITLE STATUS ACTION TEXT... -- COMMAND...: does ACTION once there are metrics, with the command's process as
# $started; it ends with that status, the summary says that it was stopped, and the output has the texts.
stopped() {
  local title=$1 status=$2 action=$3 texts=() started found
  shift 3
  while [[ $1 != -- ]]; do texts+=("$1") && shift; done
  shift
  rm -rf "$directory/out" "$directory"/pid* "$directory/summary.json"
  timeout -k 5 100 "$@" </dev/null >"$directory/output" 2>&1 9>&- &
  started=$!
  [[ " $* " == *" --out "* ]] && await_start yes || await_start no
  $action
  wait $started
  found=$?
  [[ $found -eq $status ]] || report_failure "$title: status $found"
  [[ -z $summary ]] || grep -q '"stopped": true' "$directory/summary.json" || report_failure "$title: not stopped"
  for text in "${texts[@]}"; do
    grep -qF -e "$text" "$directory/output" || report_failure "$title: no \"$text\""
  done
}
await() { for ((i = 0; i < 600; ++i)); do "$@" && return || sleep 0.1; done; }
has_pids() { [[ $(cat "$directory"/pid* 2>/dev/null | wc -l) -ge $ranks ]]; }
has_begun() { [[ $(results "$directory/out/metrics/0.jsonl")0 -gt 0 ]]; }
handles_term() { # rank 0
  local caught=0 status
  status=/proc/$(cat "$directory/pid0")/status
  grep -q fast-train "$status" 2>/dev/null && caught=$(awk '/^SigCgt/ { print $2 }' "$status" 2>/dev/null)
  (((0x${caught:-0} >> 14) & 1))
}
await_start() { # of training where metrics say so
  await has_pids
  case $1 in yes) await has_begun ;; *) await handles_term && sleep 2 ;; esac
}
child() { pgrep -P "$started" | head -n 1; }
signal_rank() { kill "-$1" "$(cat "$directory/pid$2")"; }
has_files() { [[ $(ls "$directory"/out/checkpoints/round-*/worker-*.safetensors 2>/dev/null | wc -l) -eq $1 ]]; }

ranks=3 summary=yes
run=("$mpiexec" -n 3 "$directory/rank" "$train" "${long[@]}" --out "$directory/out")
signaled=("${run[@]}") # by signals to mpiexec; that of Open MPI does not pass them on, it ends the ranks
! "$mpiexec" --version 2>/dev/null | grep -qE "OpenRTE|Open MPI" || signaled[0]=$fastrun
term_slow() { signal_rank TERM 1; }
stopped "the slow one of stale workers is asked" 0 term_slow "to be resumed" -- \
  "${run[@]}" --checkpoint-every 20 --staleness inf --slow 1:8
newest=$(ls -d "$directory"/out/checkpoints/round-* | tail -n 1)
[[ $(ls "$newest"/worker-*.safetensors | wc -l) -eq 3 ]] || report_failure "the slow one of stale workers is asked: not all have saved"
term_last() { signal_rank TERM 2; }
stopped "a stop among timed checkpoints" 0 term_last "to be resumed" -- "${run[@]}" --checkpoint-every 0.1s --keep 1
term_all() { kill -TERM "$(child)"; }
stopped "no checkpoints: the mean model is saved" 0 term_all "test accuracy" "as was asked for" -- "${signaled[@]}"
[[ -s $directory/out/mean-model.safetensors ]] || report_failure "no checkpoints: no mean model"
term_one() { signal_rank TERM 0; }
stopped "no checkpoints, and one is asked" 0 term_one "test accuracy" -- "${run[@]}"
stopped "nothing to save to" 1 term_all "test accuracy" "error: not saved: the run was stopped" -- \
  "${signaled[0]}" -n 3 "$directory/rank" "$train" "${long[@]}"
interrupt() { kill -INT "$(child)"; }
stopped "Ctrl-C" 0 interrupt "to be resumed" -- "${signaled[@]}" --checkpoint-every 1000000
stopped "Ctrl-C to fastrun" 0 interrupt "to be resumed" -- \
  "$fastrun" -n 3 "$directory/rank" "$train" "${long[@]}" --out "$directory/out" --checkpoint-every 1000000

ranks=1 summary=
interrupt_twice() { # two at once are one: again until the second one has come
  for ((i = 0; i < 60; ++i)); do signal_rank INT 0 2>/dev/null && sleep 0.5 || break; done
}
stopped "the second Ctrl-C ends at once" 130 interrupt_twice -- \
  "$directory/rank" "$train" "${long[@]}" --exchange local --workers 2 --step-ms 90000

# Timed checkpoints without worker 0.
ranks=3
saved_by_two() { has_files 2; }
kill_first() {
  signal_rank KILL 0
  await saved_by_two || report_failure "no timed checkpoint without worker 0"
  signal_rank TERM 1
}
stopped "worker 0 is killed" 0 kill_first "to be resumed" -- "$fastrun" -n 3 "$directory/rank" "$train" "${long[@]}" \
  --out "$directory/out" --checkpoint-every 1s --keep 1 --suspect-after 4

# All survivors say so when the one that writes the mean model cannot.
kill_last() { signal_rank KILL 2 && rm -rf "$directory/out" && touch "$directory/out"; }
summary=
stopped "survivors that cannot save" 1 kill_last "not saved" "0 of 3 ranks ended well" -- "$fastrun" -n 3 "$directory/rank" \
  "$train" "${long[@]}" --epochs 30 --suspect-after 4 --out "$directory/out"

# Disks of 300 kB, in a mount namespace of its own.
disk=(unshare -m -- sh -c 'mkdir -p "$directory/disk" && mount -t tmpfs -o size=300k tmpfs "$directory/disk" && exec "$@"' sh)
if "${disk[@]}" true 2>/dev/null; then
  short=(--samples 600 --model mlp --batch-size 20 --epochs 10 --quiet --out "$directory/disk")
  unsaved="error: not saved: $directory/disk/mean-model.safetensors cannot be written"
  expect "no room for the mean model" 1 "test accuracy" "$unsaved" -- "${disk[@]}" "$mpiexec" -n 2 "$train" "${short[@]}"
  expect "the same under fastrun" 1 "test accuracy" "$unsaved" -- "${disk[@]}" "$fastrun" -n 2 "$train" "${short[@]}"
  fill='(for ((i = 0; i < 300; ++i)); do grep -qs "kind.:.epoch" "$directory/disk/metrics/0.jsonl" && break || sleep 0.1; done; head -c 400000 /dev/zero >"$directory/disk/filler"; true) 2>/dev/null & exec "$@"'
  expect "the disk fills up" 1 "no checkpoint of round" "training goes on" "test accuracy" "rounds                        150" -- \
    "${disk[@]}" bash -c "$fill" bash "$mpiexec" -n 2 "$train" "${short[@]}" --checkpoint-every 0.5s --step-ms 60
else
  echo "skipped: full disks: no mount namespace can be made here"
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
