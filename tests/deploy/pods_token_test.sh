#!/usr/bin/env bash
# deploy/container/fast-pods: fastrun's token is neither in the arguments of a process, nor in a log, nor in the folder that
# all pods see. Two pods, which are processes of this machine with an address of the loopback each.
#   pods_token_test.sh FASTRUN      77: cannot be done here
set -uo pipefail
fastrun=$1
pods=$(readlink -f "$(dirname "$0")/../../deploy/container/fast-pods")
[[ $(mpiexec --version 2>/dev/null) == *HYDRA* ]] || { echo "skipped: fast-pods needs the mpiexec of MPICH"; exit 77; }
directory=$(mktemp -d)
running=()
trap 'kill "${running[@]}" 2>/dev/null; wait; rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
source "$(dirname "$0")/../support/token.sh"
mkdir "$directory/shared"
ln -s "$fastrun" "$secret/fastrun"
touch "$directory/output"

for i in 0 1; do
  env PATH="$secret:$PATH" FAST_INDEX=$i FAST_PODS=2 FAST_HOST=127.0.1.@ FAST_SHARED="$directory/shared" FAST_DEADLINE=60 \
    timeout -k 5 100 "$pods" "$secret/rank" </dev/null >"$directory/out-$i" 2>&1 &
  running+=($!)
done
look_for_token "the token of a run in pods" 2
for i in 0 1; do
  wait "${running[i]}" || { cp "$directory/out-$i" "$directory/output"; report_failure "pod $i: status $?"; }
done
running=()
[[ -s $directory/shared/run/pods/attempt-1/command-1 ]] || report_failure "pod 1 had no command"
no_token_in "the token of a run in pods" "$directory"/out-* "$directory/shared"
token_is_found || report_failure "a token in arguments is not found"
echo "$failures failures"
[[ $failures -eq 0 ]]
