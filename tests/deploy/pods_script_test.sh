#!/usr/bin/env bash
# deploy/container/fast-pods with a stand-in for fastrun: what it starts, SIGTERM before fastrun is there, and its status.
set -uo pipefail
files=$(readlink -f "$(dirname "$0")/../../deploy/container")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
unset FAST_RUN_FOLDER FAST_OPTIONS JOB_COMPLETION_INDEX
mkdir "$directory/bin" "$directory/shared"
# fastrun writes down what it is to start, gives pod 0 its command, and ends with the status $ends_with after $lasts seconds.
cat >"$directory/bin/fastrun" <<'EOF'
#!/usr/bin/env bash
trap 'echo stopped >"$directory/stopped"; exit 0' TERM
echo "$*" >"$directory/called"
echo true >"$FAST_COMMANDS_TO/command-0"
until [[ -e $FAST_COMMANDS_TO/taken-0 ]]; do sleep 0.05; done
for ((i = 0; i < lasts * 10; ++i)); do sleep 0.1; done
exit $ends_with
EOF
chmod +x "$directory/bin/fastrun"
export directory ends_with=0 lasts=0 PATH="$directory/bin:$files:$PATH"
export FAST_INDEX=0 FAST_PODS=2 FAST_HOST=fast-@.fast FAST_SHARED=$directory/shared FAST_RUN=run FAST_DEADLINE=60

# In a folder whose name is a pattern for shells.
export FAST_RUN="run[1] *"
run="$directory/shared/$FAST_RUN"
starts() { # TITLE OPTIONS: fast-train gets these, beside the usual ones
  rm -f "$run/pods/done"
  expect "$1" 0 -- fast-pods fast-train --epochs 3
  [[ $(cat "$directory/called") == *" fast-train --epochs 3 --out $run --checkpoints $run/checkpoints$2" ]] ||
    { cp "$directory/called" "$directory/output" && report_failure "$1: other options"; }
}
starts "a first start" ""
expect "a pod after the end" 0 "the run is done already" -- fast-pods fast-train
echo 1 >"$run/pods/attempt-1/ended" # it failed
mkdir "$run/checkpoints" && touch "$run/checkpoints/run.json"
starts "before the first checkpoint" " --overwrite"
echo 1 >"$run/pods/attempt-2/ended"
mkdir "$run/checkpoints/round-5"
starts "a checkpoint that is not complete" ""
echo 1 >"$run/pods/attempt-3/ended"
touch "$run/checkpoints/round-5/manifest.json"
starts "a checkpoint" " --resume $run/checkpoints"
touch "$run/pods/attempt-4/asked-1"
starts "an attempt that was asked to save" " --resume $run/checkpoints"
[[ -e $run/pods/attempt-5 ]] || report_failure "an attempt that was asked to save: the run counts as done"

# What a Job's rules of failures tell apart.
export FAST_RUN=statuses
attempts=0
ends() { # TITLE STATUS TEXT...: of pod 0
  attempts=$((attempts + 1))
  expect "$1" "$2" "${@:3}" -- fast-pods fast-train
  [[ $(cat "$directory/shared/$FAST_RUN/pods/attempt-$attempts/ended") -eq $2 ]] || report_failure "$1: the others see another status"
}
ends_with=2 ends "wrong options" 2
ends_with=1 ends "a failure" 1
ends_with=1 lasts=2 FAST_DEADLINE=1 ends "a pod that does not come" 75 "pod 0: not all pods have come within 1 s; missing: 1"
ends_with=1 lasts=2 FAST_DEADLINE=1 FAST_PODS=1 ends "a failure after the deadline" 1
ends_with=3 lasts=2 FAST_DEADLINE=1 ends "another status" 3
expect "no pod 0" 75 "pod 1: pod 0 has begun nothing within 1 s" -- env FAST_RUN=none FAST_INDEX=1 FAST_DEADLINE=1 fast-pods fast-train

# SIGTERM when pod 0 looks for the number of its attempt: at its second list of a folder.
export FAST_RUN=early
cat >"$directory/bin/ls" <<'EOF'
#!/usr/bin/env bash
echo >>"$directory/lists"
[[ $(wc -l <"$directory/lists") -ne 2 ]] || kill -TERM "$(cat "$directory/process")"
PATH=/usr/bin:/bin exec ls "$@"
EOF
chmod +x "$directory/bin/ls"
lasts=20 expect "SIGTERM before fastrun" 143 "pod 0: SIGTERM: all workers save and end" -- \
  bash -c 'echo $$ >"$directory/process"; exec fast-pods fast-train'
[[ -e $directory/shared/early/pods/attempt-1/asked-0 ]] || report_failure "SIGTERM before fastrun: the attempt would count as done"
echo "$failures failures"
[[ $failures -eq 0 ]]
