#!/usr/bin/env bash
# Ranks that torchrun, or its variables alone, start on two hosts (network namespaces) average their weights, and one that
# fails ends all.   torchrun_test.sh PYTHON, one that has the Python package. 77: cannot be done here.
set -uo pipefail
python=$1
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh program=$here/../python/programs/averages.py
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
"$python" -c 'import fast_decentralized' 2>/dev/null || { echo "skipped: $python has no fast_decentralized"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
"$hosts" up 2
export -n RANK WORLD_SIZE MASTER_ADDR MASTER_PORT LOCAL_RANK LOCAL_WORLD_SIZE
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
failures=0
failed() { echo "FAILED: $1" && cat "$directory"/out-* && failures=$((failures + 1)); }

# on_both COMMAND: the command on each host, with its number, 0 or 1, as $host. Sets $status to the sum of both.
on_both() {
  rm -f "$directory"/out-*
  local pids=() pid
  for host in 0 1; do
    timeout -k 5 150 "$hosts" enter $((host + 1)) "host=$host; $1" </dev/null >"$directory/out-$host" 2>&1 9>&- &
    pids+=($!)
  done
  status=0
  for pid in "${pids[@]}"; do wait "$pid" || status=$((status + 1)); done
}
averages() { [[ $(grep -ohE 'rank [0-3] of 4 has [0-9.]+' "$directory"/out-* | sort) == "$(printf 'rank %s of 4 has 1.5\n' 0 1 2 3)" ]]; }

variables="MASTER_ADDR=10.99.0.1 MASTER_PORT=29500 WORLD_SIZE=4"
rank="env $variables RANK=\$((2 * host + LOCAL)) '$python' '$program' HOW &"
ranks="${rank/LOCAL/0} first=\$!; ${rank/LOCAL/1} wait \$first && wait \$!"
on_both "${ranks//HOW/}"
{ [[ $status -eq 0 ]] && averages; } || failed "variables of two ranks on each host: status $status"
on_both "${ranks//HOW/raise}"
{ [[ $status -eq 2 && $(cat "$directory"/out-* | grep -c 'ValueError: no more batches') -eq 1 ]]; } ||
  failed "a rank that fails: status $status"

if "$python" -c 'import torch' 2>/dev/null; then
  # PyTorch 1.13 on Python 3.11 needs --redirects and --tee.
  on_both "'$python' -m torch.distributed.run --nnodes 2 --node_rank \$host --master_addr 10.99.0.1 --master_port 29400 \
    --nproc_per_node 2 --redirects 0:1 --tee 0:1 --log_dir '$directory/log-'\$host '$program'"
  { [[ $status -eq 0 ]] && averages; } || failed "torchrun on two hosts: status $status"
else
  echo "torchrun: skipped: $python has no torch"
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
