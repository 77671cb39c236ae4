#!/usr/bin/env bash
# deploy/slurm/train.sbatch with stand-ins for Slurm: what it says at the end of its time.
set -uo pipefail
script=$(readlink -f "$(dirname "$0")/../../deploy/slurm/train.sbatch")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
mkdir "$directory/bin"
cat >"$directory/bin/fastrun" <<'EOF'
#!/usr/bin/env bash
trap 'exit 0' TERM
sleep 0.3 # meanwhile the script makes ready for signals
echo >"$directory/started"
while :; do sleep 0.1; done
EOF
printf '#!/bin/sh\necho RUNNING\n' >"$directory/bin/squeue"
# Slurm ends the job at once when it queues it again, scontrol too.
printf '#!/bin/sh\necho "$*" >"$directory/asked"\n[ -n "$refusal" ] || kill -TERM $PPID $$\nsleep 0.1\n[ -z "$refusal" ] || { echo "$refusal" >&2; exit 1; }\n' >"$directory/bin/scontrol"
chmod +x "$directory"/bin/*
unset FAST_RUN_FOLDER SLURM_RESTART_COUNT
export directory refusal PATH="$directory/bin:$PATH" SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_SUBMIT_DIR=$directory

end_of_time() { # TITLE TEXT...
  rm -f "$directory/started" "$directory/asked"
  bash "$script" >"$directory/output" 2>&1 </dev/null &
  for ((i = 0; i < 100; ++i)); do [[ -e $directory/started ]] && break || sleep 0.1; done
  kill -TERM $!
  wait $! || tell_failure "$1: status $?"
  [[ $(cat "$directory/asked") == "requeue 7" ]] || tell_failure "$1: Slurm is not asked"
  for text in "${@:2}"; do grep -qF -e "$text" "$directory/output" || tell_failure "$1: no \"$text\""; done
}
refusal="" end_of_time "Slurm agrees" "job 7: all workers have saved; asking Slurm to queue it again"
grep -qE "not queued|No such process" "$directory/output" && tell_failure "Slurm agrees: a refusal is told"
refusal="slurm_requeue error: Operation not permitted"
end_of_time "Slurm refuses" "$refusal" "job 7: it is not queued again; submit it with FAST_RUN_FOLDER=$directory/run-7"
echo "$failures failures"
[[ $failures -eq 0 ]]
