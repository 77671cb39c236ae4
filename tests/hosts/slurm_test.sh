#!/usr/bin/env bash
# fastrun and fast-train in a Slurm of four nodes (network namespaces), with daemons, keys and files of its own.
#   slurm_test.sh FASTRUN FAST_TRAIN [PART]      77: cannot be done here
# PART: array, python, signal, requeue or first_node (the batch scripts of deploy/slurm), sixteen (4 nodes x 4 ranks), mixed (a
# heterogeneous job) or pmix (Open MPI; scripts/open_mpi.sh runs it).
set -uo pipefail
fastrun=$1 train=$2 part=${3:-}
deploy=$(readlink -f "$(dirname "$0")/../../deploy/slurm")
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
export PATH=$PATH:/usr/sbin
skip() { echo "skipped: $*" && exit 77; }
any=
if [[ $part == pmix ]]; then
  mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI" || skip "this test needs Open MPI; scripts/open_mpi.sh runs it"
  ldconfig -p | grep -qE 'libpmix\.so ' || skip "Slurm loads libpmix.so; apt-get install libpmix-dev"
  any=any
fi
why=$("$hosts" check $any) || skip "$why"
for program in slurmctld slurmd munged srun sbatch; do
  command -v $program >/dev/null || skip "no $program here; apt-get install slurm-wlm munge"
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
mkdir "$directory"/{state,munge,{spool,tmp}.fasthost{1..4}}
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
TmpFS=$directory/tmp.%n
SlurmdParameters=config_overrides
SlurmdTimeout=4
MessageTimeout=3
SchedulerParameters=bf_interval=1,sched_interval=5
NodeName=fasthost[1-3] NodeAddr=10.99.0.[1-3] CPUs=4
NodeName=fasthost4 NodeAddr=10.99.0.4 CPUs=4 Feature=gpu
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

wait_for_end() { # JOB
  for ((i = 0; i < 900; ++i)); do [[ -n $(squeue -h -j "$1" -o %T 2>/dev/null) ]] || break; sleep 0.1; done
}
expect_texts() { # TITLE FILE TEXT...
  cp "$2" output
  for text in "${@:3}"; do grep -qF -e "$text" output || report_failure "$1: no \"$text\""; done
}
# start_train ARGUMENT... -- ARGUMENT OF fast-train...: deploy/slurm/train.sbatch on two nodes; sets job.
start_train() {
  local of_sbatch=()
  while [[ $1 != -- ]]; do of_sbatch+=("$1") && shift; done
  export FAST_RUN_FOLDER=$directory/again
  sbatch -N 2 --ntasks-per-node=1 -o "$directory/job" "${of_sbatch[@]}" "$deploy/train.sbatch" fast-train "${long[@]}" "${@:2}" >output 2>&1 ||
    report_failure "train: status $?"
  job=$(sed -n 's/Submitted batch job //p' output)
}
expect_resumed() { # once, to the end
  wait_for_end "$job"
  expect_texts train job "resuming from round" "epochs                        $1"
  grep -E "not queued|No such process" job >output && report_failure "train: a false error"
  [[ $(scontrol show job "$job" | grep -oE 'JobState=[A-Z]*|Restarts=[0-9]*' | sort | paste -sd' ') == "JobState=COMPLETED Restarts=1" ]] ||
    { scontrol show job "$job" >output; report_failure "train: the job's state"; }
}
mkdir bin
ln -s "$fastrun" bin/fastrun
ln -s "$train" bin/fast-train
export PATH=$directory/bin:$PATH
# place.sh PROGRAM: writes the host of each rank to the file ranks.
printf '#!/bin/bash\necho "$(hostname)" >>%s/ranks\nexec "$@"\n' "$directory" >place.sh
chmod +x place.sh
expect_places() { # TITLE RANKS
  sort ranks | uniq -c | sed 's/^ *//' | paste -sd, >output
  [[ $(cat output) == "$2" ]] || report_failure "$1: other places of ranks"
}

case $part in
array) # each task has its seed
  sbatch -W --array=1-2 --ntasks-per-node=2 -o "$directory/array-%a" --export=ALL,FAST_RUN_FOLDER="$directory/seeds" \
    "$deploy/array.sbatch" fast-train "${small[@]}" >output 2>&1 || report_failure "array: status $?"
  for seed in 1 2; do
    grep -q "^seed = $seed$" "seeds/seed-$seed/config.toml" || report_failure "array: seed $seed"
    [[ -s seeds/seed-$seed/mean-model.safetensors ]] || report_failure "array: no model of seed $seed"
  done
  finish
  ;;
python) # a program of one's own, by the Python of a virtual environment
  python3 -m venv --without-pip .venv >output 2>&1 || report_failure "python: no environment"
  cat >train.py <<'EOF'
import os, pathlib, sys
run, rank = pathlib.Path(os.environ["FAST_RUN_FOLDER"]), os.environ["FASTRUN_RANK"]
(run / rank).write_text(f"{os.uname().nodename} {sys.prefix} {(run / 'saved').read_text()}")
EOF
  mkdir again && echo before >again/saved
  sbatch -W -N 2 --ntasks-per-node=2 -o "$directory/job" --export=ALL,FAST_RUN_FOLDER="$directory/again" "$deploy/python.sbatch" >output 2>&1 ||
    { cp job output; report_failure "python: status $?"; }
  for rank in 0 1 2 3; do echo "fasthost$((rank / 2 + 1)) $directory/.venv before"; done | diff - <(cat again/{0..3}) >output || report_failure "python: the ranks"
  finish
  ;;
signal) # Of a minute, Slurm sends the signal 10 s to 40 s after the start: all save, the job is queued again and resumes.
  start_train --time=1 --signal=B:TERM@20 -- --epochs 150
  for ((i = 0; i < 700; ++i)); do grep -q "asking Slurm" job 2>/dev/null && break || sleep 0.1; done
  scontrol update JobId="$job" TimeLimit=10 # no signal after that
  expect_texts signal job "stopped after" "all workers have saved; asking Slurm to queue it again"
  expect_resumed 150
  finish
  ;;
requeue | first_node) # The first node is lost, where the script runs. Slurm queues the job again, or with --no-kill we ask it to.
  option=--no-kill
  [[ $part == first_node ]] || option=--no-kill=off
  start_train $option -- --epochs 40 --checkpoint-every 20
  for ((i = 0; i < 300; ++i)); do compgen -G "again/checkpoints/round-*/manifest.json" >/dev/null && break || sleep 0.1; done
  "$hosts" lose 1
  if [[ $part == first_node ]]; then
    for ((i = 0; i < 300; ++i)); do [[ $(sinfo -h -n fasthost1 -o %t) == down* ]] && break || sleep 0.1; done
    scontrol requeue "$job" >output 2>&1 || report_failure "requeue: status $?"
  fi
  expect_resumed 40
  finish
  ;;
sixteen)
  expect "4 x 4" 0 "workers                       16" "topology                      torus 4x4" "algorithm                     awc" -- \
    salloc -N 4 --ntasks-per-node=4 "$fastrun" -n 16 ./place.sh "$train" --samples 1600 --batch-size 20 \
    --model mlp --epochs 1 --quiet --algorithm awc --topology torus2d
  expect_places "4 x 4" "4 fasthost1,4 fasthost2,4 fasthost3,4 fasthost4"
  finish
  ;;
pmix) # srun starts the ranks of Open MPI. Those of two nodes reach each other over TCP alone.
  export OMPI_MCA_btl_tcp_if_include=10.99.0.0/24 OMPI_MCA_oob_tcp_if_include=10.99.0.0/24
  export OMPI_MCA_hwloc_base_binding_policy=none
  by_pmix() { # TITLE PLACES WORKERS OPTION OF srun... -- ARGUMENT OF fast-train...
    local title=$1 places=$2 workers=$3 of_srun=()
    shift 3
    while [[ $1 != -- ]]; do of_srun+=("$1") && shift; done
    rm -f ranks
    expect "$title" 0 "test accuracy" "workers                       $workers" -- srun --mpi=pmix "${of_srun[@]}" ./place.sh "$train" "${small[@]}" "${@:2}"
    expect_places "$title" "$places"
  }
  by_pmix "one node" "4 fasthost1" 4 -w fasthost1 -N 1 -n 4 -- --out "$directory/by_srun"
  by_pmix "2 x 2" "2 fasthost1,2 fasthost2" 4 -w fasthost1,fasthost2 -N 2 --ntasks-per-node=2 --
  by_pmix "4 x 1" "1 fasthost1,1 fasthost2,1 fasthost3,1 fasthost4" 4 -N 4 --ntasks-per-node=1 -- --algorithm awc --topology ring
  expect "mpiexec" 0 "test accuracy" -- mpiexec --oversubscribe -n 4 "$train" "${small[@]}" --out "$directory/by_mpiexec"
  cmp by_srun/mean-model.safetensors by_mpiexec/mean-model.safetensors >output 2>&1 || report_failure "srun and mpiexec: other weights"
  printf '#!/bin/bash\nexec srun --mpi=pmix %s\n' "$train ${small[*]}" >pmix.sh
  expect "sbatch" 0 "test accuracy" "workers                       4" -- \
    bash -c 'sbatch -W -o job -N 2 --ntasks-per-node=2 pmix.sh; status=$?; cat job; exit $status'
  expect "srun fastrun" 1 "has started this already" -- srun -n 2 --mpi=pmix "$fastrun" -n 2 true
  save() { scancel --signal=USR2 "$(squeue -h -o %i)"; }
  expect_on_the_way "USR2" "stopped after" "$directory/stopped/metrics/0.jsonl" save -- \
    srun --mpi=pmix -N 2 --ntasks-per-node=1 "$train" "${long[@]}" --epochs 60 --out "$directory/stopped" --checkpoints "$directory/saved"
  compgen -G "saved/round-*/manifest.json" >output || report_failure "USR2: nothing is saved"
  finish
  ;;
mixed) # Two components with different options; the node of the second one stands for one with a GPU.
  cat >mixed.sh <<EOF
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks-per-node=1 --constraint=gpu
srun --mpi=pmi2 --het-group=0 ./place.sh $train ${small[*]} --balance measured : \\
  --het-group=1 ./place.sh $train ${small[*]} --balance measured --threads 2
EOF
  expect "mixed" 0 "test accuracy" "workers                       5" -- bash -c 'sbatch -W -o job mixed.sh; status=$?; cat job; exit $status'
  expect_places "mixed" "2 fasthost1,2 fasthost2,1 fasthost4"
  finish
  ;;
esac

expect "srun" 0 "test accuracy" "workers                       4" -- srun -N 2 --ntasks-per-node=2 --mpi=pmi2 "$train" "${small[@]}"
expect "srun fastrun" 1 "has started this already" -- srun -n 2 --mpi=pmi2 "$fastrun" -n 2 true
expect "salloc" 0 "rank 0 on fasthost1" "rank 1 on fasthost2" -- \
  salloc -N 2 --ntasks-per-node=1 "$fastrun" -n 2 bash -c 'echo "rank $FASTRUN_RANK on $(hostname)"'

batch() { sbatch -W -o "$directory/job" "$@" && cat "$directory/job"; }
export -f batch
export directory
printf '#!/bin/bash\n%s -n 4 %s\n' "$fastrun" "$train ${small[*]}" >train.sh
expect "sbatch" 0 "test accuracy" "workers                       4" -- bash -c 'batch -N 2 --ntasks-per-node=2 train.sh'
printf '#!/bin/bash\n%s -n 2 bash -c %s\n' "$fastrun" "'echo \"threads \$OMP_NUM_THREADS, cores \$SLURM_CPUS_PER_TASK\"'" >cores.sh
expect "cores of a task" 0 "threads 3, cores 3" -- bash -c 'batch -N 2 --ntasks-per-node=1 --cpus-per-task=3 cores.sh'

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
grep -qF "on fasthost2) died of signal 9" output || report_failure "a rank dies: who?"

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
  grep -qF "$text" "$directory/output" || report_failure "a node is lost: no \"$text\""
done
[[ -s $directory/lost/mean-model.safetensors ]] || report_failure "a node is lost: nothing is saved"
finish
