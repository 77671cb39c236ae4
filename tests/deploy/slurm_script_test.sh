#!/usr/bin/env bash
# deploy/slurm with stand-ins for Slurm and fastrun: what train.sbatch and python.sbatch start, and what train.sbatch says and
# does at the end of its time.
set -uo pipefail
scripts=$(readlink -f "$(dirname "$0")/../../deploy/slurm")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
mkdir "$directory/bin"
# fastrun writes down what it is to start. Then it ends, or saves at SIGTERM.
cat >"$directory/bin/fastrun" <<'EOF'
#!/usr/bin/env bash
trap 'exit 0' TERM
printf '%s\n' "$*" "folder ${FAST_RUN_FOLDER:-}" >"$directory/called"
[[ -n $trains ]] || exit 0
sleep 0.3 # meanwhile the script makes ready for signals
echo >"$directory/started"
while :; do sleep 0.1; done
EOF
printf '#!/bin/sh\n[ -n "$state" ] || { echo "slurm_load_jobs error: no answer" >&2; exit 1; }\necho "$state"\n' >"$directory/bin/squeue"
# Slurm ends the job at once when it queues it again, scontrol too.
printf '#!/bin/sh\necho "$*" >"$directory/asked"\n[ -n "$refusal" ] || kill -TERM $PPID $$\nsleep 0.1\n[ -z "$refusal" ] || { echo "$refusal" >&2; exit 1; }\n' >"$directory/bin/scontrol"
chmod +x "$directory"/bin/*
unset FAST_RUN_FOLDER SLURM_RESTART_COUNT VIRTUAL_ENV
export directory refusal state trains='' PATH="$directory/bin:$PATH" SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_SUBMIT_DIR=$directory

# starts TITLE ARGUMENTS -- COMMAND...: fastrun gets these, and the folder $run.
starts() {
  local title=$1 arguments=$2
  rm -f "$directory/called"
  expect "$title" 0 -- "${@:4}"
  printf '%s\n' "$arguments" "folder $run" | diff - "$directory/called" >"$directory/output" 2>&1 || report_failure "$title: another command"
}
# In a folder whose name is a pattern for shells.
run="$directory/run[1] *"
train=(env FAST_RUN_FOLDER="$run" bash "$scripts/train.sbatch")
again=("${train[@]:0:2}" SLURM_RESTART_COUNT=1 "${train[@]:2}")
usual="-n 2 fast-train --model lenet --epochs 10 --checkpoint-every 10min --out $run --checkpoints $run/checkpoints"
given="-n 2 /opt/fast-train --epochs 3 --out $run --checkpoints $run/checkpoints"
starts "a first start" "$usual" -- "${train[@]}"
starts "a command of one's own" "$given" -- "${train[@]}" /opt/fast-train --epochs 3
mkdir -p "$run/checkpoints" && touch "$run/checkpoints/run.json"
starts "before the first checkpoint" "$usual --overwrite" -- "${again[@]}"
mkdir "$run/checkpoints/round-5"
starts "a checkpoint that is not complete" "$usual" -- "${again[@]}"
touch "$run/checkpoints/round-5/manifest.json"
starts "a checkpoint" "$usual --resume $run/checkpoints" -- "${again[@]}"
starts "a checkpoint of a job before" "$given --resume $run/checkpoints" -- "${train[@]}" /opt/fast-train --epochs 3
starts "another program" "-n 2 python train.py --epochs 3" -- "${again[@]}" python train.py --epochs 3
run=$directory/run-7
starts "another program, the usual folder" "-n 2 python train.py" -- bash "$scripts/train.sbatch" python train.py

# python.sbatch: the environment's programs come first.
mkdir -p "$directory/.venv/bin" "$directory/other/bin"
for environment in .venv other; do printf '%s\n' "export PATH=\"$directory/$environment/bin:\$PATH\"" >"$directory/$environment/bin/activate"; done
printf '#!/bin/sh\nexec "%s/bin/fastrun" other "$@"\n' "$directory" >"$directory/other/bin/fastrun"
chmod +x "$directory/other/bin/fastrun"
starts "a loop in Python" "-n 2 python train.py" -- bash "$scripts/python.sbatch"
[[ -d $run ]] || report_failure "a loop in Python: no folder for the run"
starts "another environment" "other -n 2 python other.py --epochs 3" -- env VIRTUAL_ENV="$directory/other" bash "$scripts/python.sbatch" python other.py --epochs 3
run="$directory/run[1] *"
starts "a folder of a job before" "-n 2 python train.py" -- env FAST_RUN_FOLDER="$run" bash "$scripts/python.sbatch"
expect "no environment" 2 "$directory/none is no virtual environment; make it with python3 -m venv, or give VIRTUAL_ENV" -- \
  env VIRTUAL_ENV="$directory/none" bash "$scripts/python.sbatch"
[[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "no environment: more than one line"

end_of_time() { # TITLE STATUS TEXT...
  rm -f "$directory/started" "$directory/asked"
  trains=1 bash "$scripts/train.sbatch" >"$directory/output" 2>&1 </dev/null &
  for ((i = 0; i < 100; ++i)); do [[ -e $directory/started ]] && break || sleep 0.1; done
  kill "-${signal:-TERM}" $!
  wait $!
  local status=$?
  [[ $status -eq $2 ]] || report_failure "$1: status $status"
  for text in "${@:3}"; do grep -qF -e "$text" "$directory/output" || report_failure "$1: no \"$text\""; done
}
is_asked() { [[ $(cat "$directory/asked" 2>/dev/null) == "requeue 7" ]] || report_failure "$1: Slurm is not asked"; }
saved="job 7: all workers have saved"
state=RUNNING refusal="" end_of_time "Slurm agrees" 0 "$saved; asking Slurm to queue it again"
is_asked "Slurm agrees"
signal=USR1 state=RUNNING refusal="" end_of_time "SIGUSR1" 0 "$saved; asking Slurm to queue it again"
is_asked "SIGUSR1"
grep -qE "not queued|No such process" "$directory/output" && report_failure "Slurm agrees: a refusal is told"
refusal="slurm_requeue error: Operation not permitted" not_again="job 7: it is not queued again; submit it with FAST_RUN_FOLDER=$directory/run-7"
state=RUNNING end_of_time "Slurm refuses" 75 "$refusal" "$not_again"
is_asked "Slurm refuses"
state="" end_of_time "squeue fails, and Slurm refuses" 75 "no answer" "$refusal" "$not_again"
is_asked "squeue fails, and Slurm refuses"
state="" refusal="" end_of_time "squeue fails" 0 "no answer" "$saved; asking Slurm to queue it again"
is_asked "squeue fails"
state=COMPLETING end_of_time "the job was canceled" 75 "$saved; its state is COMPLETING, so Slurm is not asked"
[[ ! -e $directory/asked ]] || report_failure "the job was canceled: Slurm is asked"
echo "$failures failures"
[[ $failures -eq 0 ]]
