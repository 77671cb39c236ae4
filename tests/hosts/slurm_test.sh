#!/usr/bin/env bash
# fastrun and fast-train in a Slurm of four nodes (network namespaces), with daemons, keys and files of its own.
#   slurm_test.sh FASTRUN FAST_TRAIN [files]       files: the batch scripts of deploy/slurm. 77: cannot be done here
set -uo pipefail
fastrun=$1 train=$2 part=${3:-}
deploy=$(readlink -f "$(dirname "$0")/../../deploy/slurm")
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
export PATH=$PATH:/usr/sbin
for program in slurmctld slurmd munged srun sbatch; do
  command -v $program >/dev/null || { echo "skipped: no $program here; apt-get install slurm-wlm munge"; exit 77; }
done
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
daemons=()
trap 'kill "${daemons[@]}" 2>/dev/null; "$hosts" down; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
"$hosts" up 4
source "$(dirname "$0")/../support/expect.sh"

here=$(hostname -s)
{
  printf '%s\n' "127.0.0.1 localhost" "10.99.0.254 $here"
  for i in {1..4}; do echo "10.99.0.$i fasthost$i"; done
} >"$directory/hosts"
mkdir "$directory"/{state,munge,spool.fasthost{1..4}}
head -c 1024 /dev/urandom >"$directory/munge/key" && chmod 400 "$directory/munge/key"
munged --foreground --force --socket "$directory/munge/socket" --key-file "$directory/munge/key" \
  --pid-file "$directory/munge/pid" --log-file "$directory/munge/log" --seed-file "$directory/munge/seed" 2>"$directory/munged.out" 9>&- &
daemons+=($!)
echo "CgroupPlugin=cgroup/v1" >"$directory/cgroup.conf"
cat >"$directory/slurm.conf" <<EOF
ClusterName=fast
SlurmctldHost=$here(10.99.0.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$directory/munge/socket,cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=$directory/state
SlurmctldPidFile=$directory/slurmctld.pid
SlurmdPidFile=$directory/slurmd.%n.pid
SlurmdSpoolDir=$directory/spool.%n
SlurmdParameters=config_overrides
SlurmdTimeout=4
MessageTimeout=3
NodeName=fasthost[1-4] NodeAddr=10.99.0.[1-4] CPUs=2
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4
EOF
export SLURM_CONF=$directory/slurm.conf
for ((i = 0; i < 100; ++i)); do [[ -S $directory/munge/socket ]] && break || sleep 0.1; done
slurmctld -D >"$directory/slurmctld.out" 2>&1 9>&- &
daemons+=($!)
for i in {1..4}; do
  "$hosts" enter "$i" "bash -c 'mount --bind $directory/hosts /etc/hosts; exec slurmd -D -N fasthost$i'" \
    </dev/null >"$directory/slurmd$i.out" 2>&1 9>&- &
done
for ((i = 0; i < 150; ++i)); do [[ $(sinfo -h -o "%t %D" 2>/dev/null) == "idle 4" ]] && break || sleep 0.2; done

cd "$directory" || exit 1
small=(--samples 600 --model mlp --epochs 1 --quiet)
long=(--samples 4000 --model mlp --step-ms 10 --quiet)
finish() {
  [[ $failures -eq 0 ]] || tail -n 20 ./*.out
  echo "$failures failures"
  [[ $failures -eq 0 ]]
  exit
}

if [[ $part == files ]]; then
  mkdir bin
  ln -s "$fastrun" bin/fastrun
  ln -s "$train" bin/fast-train
  export PATH=$directory/bin:$PATH
  # A job array: each task has its seed.
  sbatch -W --array=1-2 --ntasks-per-node=2 -o "$directory/array-%a" --export=ALL,FAST_RUN_FOLDER="$directory/seeds" \
    "$deploy/array.sbatch" fast-train "${small[@]}" >output 2>&1 || tell_failure "array: status $?"
  for seed in 1 2; do
    grep -q "^seed = $seed$" "seeds/seed-$seed/config.toml" || tell_failure "array: seed $seed"
    [[ -s seeds/seed-$seed/mean-model.safetensors ]] || tell_failure "array: no model of seed $seed"
  done
  # Slurm's signal: all save, the job is queued again, and resumes where it was.
  export FAST_RUN_FOLDER=$directory/again
  sbatch -N 2 --ntasks-per-node=1 -o "$directory/job" "$deploy/train.sbatch" fast-train "${long[@]}" --epochs 30 >output 2>&1 ||
    tell_failure "train: status $?"
  job=$(sed -n 's/Submitted batch job //p' output)
  for ((i = 0; i < 300 && $(results "$directory/again/metrics/0.jsonl")0 < 1; ++i)); do sleep 0.1; done
  scancel --signal=TERM --batch "$job"
  for ((i = 0; i < 900; ++i)); do [[ -n $(squeue -h -j "$job" -o %T 2>/dev/null) ]] || break; sleep 0.1; done
  cp job output
  for text in "stopped after" "all workers have saved; asking Slurm to queue it again" "resuming from round" "epochs                        30"; do
    grep -qF -e "$text" output || tell_failure "train: no \"$text\""
  done
  [[ $(scontrol show job "$job" | grep -oE 'JobState=[A-Z]*|Restarts=[0-9]*' | sort | paste -sd' ') == "JobState=COMPLETED Restarts=1" ]] ||
    { scontrol show job "$job" >output; tell_failure "train: the job's state"; }
  finish
fi

expect "srun" 0 "test accuracy" "workers                       4" -- srun -N 2 --ntasks-per-node=2 --mpi=pmi2 "$train" "${small[@]}"
expect "srun fastrun" 1 "has started this already" -- srun -n 2 --mpi=pmi2 "$fastrun" -n 2 true
expect "salloc" 0 "rank 0 on fasthost1" "rank 1 on fasthost2" -- \
  salloc -N 2 --ntasks-per-node=1 "$fastrun" -n 2 bash -c 'echo "rank $FASTRUN_RANK on $(hostname)"'

batch() { sbatch -W -o "$directory/job" "$@" && cat "$directory/job"; }
export -f batch
export directory
printf '#!/bin/bash\n%s -n 4 %s\n' "$fastrun" "$train ${small[*]}" >train.sh
expect "sbatch" 0 "test accuracy" "workers                       4" -- bash -c 'batch -N 2 --ntasks-per-node=2 train.sh'

cat >rank.sh <<'EOF'
#!/bin/bash
[[ $FASTRUN_RANK = 0 ]] || echo "$(hostname) $$" >"$directory/victim"
exec "$@"
EOF
chmod +x rank.sh
kill_victim() { # by way of the process table of its node
  local name
  read -r name _ <"$directory/victim"
  srun --overlap --jobid="$(squeue -h -o %i)" -N 1 -w "$name" bash -c 'kill -9 $(cut -d " " -f 2 <"$directory/victim")'
}
expect_on_the_way "a rank dies" "lost workers                  1" "$directory/dies/metrics/0.jsonl" kill_victim -- \
  salloc -N 2 --ntasks-per-node=1 "$fastrun" -n 2 "$directory/rank.sh" "$train" "${long[@]}" --epochs 20 --suspect-after 1 --out "$directory/dies"
grep -qF "on fasthost2) died of signal 9" output || tell_failure "a rank dies: who?"

printf '#!/bin/bash\nexec %s -n 2 %s\n' "$fastrun" "$train ${long[*]} --epochs 60 --out $directory/stopped --checkpoints $directory/saved" >stop.sh
preempt() { scancel --signal=TERM --batch "$(squeue -h -o %i)"; }
expect_on_the_way "pre-emption" "stopped after" "$directory/stopped/metrics/0.jsonl" preempt -- bash -c 'batch -N 2 --ntasks-per-node=1 stop.sh; cat "$directory/job"'

# A node is lost: cut off and all its processes killed. Slurm takes it for down after about 11 s, in less than half of
# the training time; the other three finish, evaluate and save.
lose_node() { "$hosts" lose 3; }
expect_on_the_way "a node is lost" "lost workers                  2" "$directory/lost/metrics/0.jsonl" lose_node -- \
  salloc --no-kill -N 4 --ntasks-per-node=1 "$fastrun" -n 4 --lost-after 3 --min-workers 3 "$train" --samples 2400 --model mlp \
  --batch-size 20 --step-ms 10 --epochs 70 --quiet --suspect-after 2 --out "$directory/lost"
for text in "rank 2 on fasthost3 is out of reach" "Node failure on fasthost3" "3 of 4 ranks ended well"; do
  grep -qF "$text" "$directory/output" || tell_failure "a node is lost: no \"$text\""
done
[[ -s $directory/lost/mean-model.safetensors ]] || tell_failure "a node is lost: nothing is saved"
finish
