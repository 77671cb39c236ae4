#!/usr/bin/env bash
# deploy/container/fast-pods in four pods (network namespaces with names by a hosts file, and one folder that all see).
#   pods_test.sh FASTRUN FAST_TRAIN PART     PART: finishes, returns, waits, stopped or launcher. 77: cannot be done here
set -uo pipefail
fastrun=$1 train=$2 part=$3
here=$(dirname "$(readlink -f "$0")")
hosts=$here/../hosts/hosts.sh
pods=$(readlink -f "$here/../../deploy/container/fast-pods")
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
[[ -e /etc/hosts ]] || { echo "skipped: there is no /etc/hosts, which names of pods replace"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
running=()
trap '"$hosts" down; kill "${running[@]}" 2>/dev/null; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
"$hosts" up 4
source "$here/../support/expect.sh"
{
  echo "127.0.0.1 localhost"
  echo "10.99.0.1 fast-0.fast" # the others' names are not needed: their pods may come later
} >"$directory/hosts"
mkdir "$directory/shared" "$directory/bin"
ln -s "$fastrun" "$directory/bin/fastrun"
ln -s "$train" "$directory/bin/fast-train"

# pod I PROGRAM...: starts pod I in the background, as its own processes.
pod() {
  local number=$1
  shift
  "$hosts" enter $((number + 1)) "mount --bind '$directory/hosts' /etc/hosts; PATH='$directory/bin':\$PATH JOB_COMPLETION_INDEX=$number \
    FAST_PODS=4 FAST_HOST=fast-@.fast FAST_SHARED='$directory/shared' FAST_DEADLINE=60 ${settings:-} '$pods' $*" </dev/null >>"$directory/out-$number" 2>&1 9>&- &
  running[$number]=$!
}
# The script itself has no end before its ranks: what it exits with is the pod's status.
kill_pod() { ip netns pids "fasthost$(($1 + 1))" | xargs -r kill -9 2>/dev/null; }
# end_pod I SIGNAL: to the first process of the pod that is the script.
end_pod() {
  local process
  for process in $(ip netns pids "fasthost$(($1 + 1))"); do
    [[ $(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null) != "bash $pods "* ]] || { kill "-$2" "$process" && return; }
  done
  return 1
}
all_out() { cat "$directory"/out-* >"$directory/output"; }
# wait_until SECONDS COMMAND...: fails the test after that time.
wait_until() {
  local most=$1
  shift
  for ((i = 0; i < most * 10; ++i)); do "$@" && return; sleep 0.1; done
  all_out; report_failure "waited $most s for: $*" && exit 1
}
has_epoch() { [[ $(results "$directory/shared/run/metrics/0.jsonl")0 -ge ${1:-1}0 ]]; }
said() { grep -qF "$1" "$directory"/out-*; }
statuses() { # WANTED...: of all pods, when they have ended
  local i=0 wanted status
  for wanted in "$@"; do
    wait "${running[i]}"
    status=$?
    all_out
    [[ $status -eq $wanted ]] || report_failure "pod $i: status $status, $wanted is wanted"
    i=$((i + 1))
  done
}
all_gone() { local i; for i in {1..4}; do [[ -z $(ip netns pids "fasthost$i") ]] || return 1; done; }
training="fast-train --samples 5000 --model mlp --batch-size 25 --step-ms 10 --quiet --suspect-after 1"

case $part in
finishes)
  settings="FAST_RUN=waiting FAST_DEADLINE=3" # the others do not come
  for i in 0 2; do pod $i "fast-train --samples 700 --model mlp --epochs 1 --quiet"; done
  for i in 0 2; do
    wait "${running[i]}"
    status=$?
    all_out
    [[ $status -eq 75 ]] || report_failure "pod $i without the others: status $status"
  done
  said "not all pods have come within 3 s; missing: 1,3" || report_failure "pods without the others"
  rm "$directory"/out-*
  settings="FAST_RANKS=2 FAST_SPARES=1" # two ranks in each of four pods, one of them a spare
  for i in 3 1 2 0; do pod $i "fast-train --samples 700 --model mlp --epochs 1 --quiet"; done
  statuses 0 0 0 0
  said "workers                       7" || report_failure "seven workers"
  [[ -s $directory/shared/run/mean-model.safetensors ]] || report_failure "no model"
  pod 0 fast-train # a pod that is started again does not train again
  wait "${running[0]}" || report_failure "a pod after the end: status $?"
  said "the run is done already" || report_failure "a pod after the end"
  FAST_PODS=4 "$pods" fast-train >"$directory/output" 2>&1 && report_failure "a pod without a number is accepted"
  grep -qF "FAST_INDEX: \"\"; the number of this pod is required" "$directory/output" || report_failure "a pod without a number"
  FAST_PODS=4 FAST_INDEX=4 "$pods" fast-train >"$directory/output" 2>&1 && report_failure "a fifth pod of four is accepted"
  [[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "more than one line"
  ;;
returns) # a pod is killed, comes back, and all go on with four workers
  for i in {0..3}; do pod $i "$training --epochs 20 --checkpoint-every 20"; done
  wait_until 60 has_epoch
  kill_pod 2
  wait_until 30 said "rank 2 on fasthost3 is out of reach"
  pod 2 "$training --epochs 20 --checkpoint-every 20"
  wait_until 60 said "attempt 1 has ended early"
  statuses 0 0 0 0
  said "resuming from round" || report_failure "nothing was resumed"
  [[ -e $directory/shared/run/pods/attempt-2/taken-2 ]] || report_failure "the pod that came back took no part"
  [[ $(tail -n 1 "$directory/shared/run/pods/attempt-2/ended") == 0 ]] || report_failure "the second attempt failed"
  grep -q '"epoch":20' "$directory/shared/run/metrics/2.jsonl" || report_failure "worker 2 did not train to the end"
  ;;
waits) # the others finish without a pod, which waits for them
  settings="FAST_RETURN=wait"
  for i in {0..3}; do pod $i "$training --epochs 16"; done
  wait_until 60 has_epoch
  kill_pod 3
  wait_until 30 said "rank 3 on fasthost4 is out of reach"
  pod 3 "$training --epochs 16"
  wait_until 30 said "attempt 1 goes on without it"
  statuses 0 0 0 0
  said "lost workers                  3" || report_failure "no worker was lost"
  [[ ! -e $directory/shared/run/pods/attempt-2 ]] || report_failure "there was a second attempt"
  ;;
stopped) # SIGTERM to one pod saves all; the pods that come back go on
  for i in {0..3}; do pod $i "$training --epochs 20"; done
  wait_until 60 has_epoch
  end_pod 1 TERM || report_failure "no process of pod 1"
  wait "${running[1]}"
  [[ $? -eq 143 ]] || report_failure "pod 1 after SIGTERM"
  wait_until 30 said "attempt 1 has ended early"
  compgen -G "$directory/shared/run/checkpoints/round-*/manifest.json" >/dev/null || report_failure "nothing was saved"
  pod 1 "$training --epochs 20"
  statuses 0 0 0 0
  said "resuming from round" || report_failure "nothing was resumed"
  ;;
launcher) # pod 0 is lost with fastrun: all end, and go on from the last checkpoint when it is back
  for i in {0..3}; do pod $i "$training --epochs 14 --checkpoint-every 20"; done
  wait_until 60 has_epoch 2
  kill_pod 0
  wait "${running[0]}" 2>/dev/null
  pod 0 "$training --epochs 14 --checkpoint-every 20"
  statuses 0 0 0 0
  said "resuming from round" || report_failure "nothing was resumed"
  ;;
*) echo "part $part: choose finishes, returns, waits, stopped or launcher" && exit 2 ;;
esac
wait_until 10 all_gone
echo "$failures failures"
[[ $failures -eq 0 ]]
