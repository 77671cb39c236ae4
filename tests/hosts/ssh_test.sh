#!/usr/bin/env bash
# fastrun over ssh, as people have it, to two hosts (network namespaces), each with an sshd of its own.
#   ssh_test.sh FASTRUN FAST_TRAIN        77: cannot be done here
set -uo pipefail
fastrun=$1 train=$2
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
sshd=$(PATH=$PATH:/usr/sbin command -v sshd) && ssh=$(command -v ssh) && command -v ssh-keygen >/dev/null ||
  { echo "skipped: no sshd and ssh here; apt-get install openssh-server openssh-client"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
"$hosts" up 2

ssh-keygen -q -t ed25519 -N "" -f "$directory/host_key"
ssh-keygen -q -t ed25519 -N "" -f "$directory/key"
mkdir -p /run/sshd
for i in 1 2; do
  printf '%s\n' "HostKey $directory/host_key" "AuthorizedKeysFile $directory/key.pub" "StrictModes no" "UsePAM no" \
    "PidFile none" >"$directory/sshd$i"
  "$hosts" enter "$i" "$sshd" -D -e -f "$directory/sshd$i" </dev/null >"$directory/log$i" 2>&1 9>&- &
done
printf '%s\n' "IdentityFile $directory/key" "IdentitiesOnly yes" "UserKnownHostsFile $directory/known" \
  "StrictHostKeyChecking no" "LogLevel ERROR" >"$directory/config"
mkdir "$directory/bin" # ssh, but for its keys, is the machine's
printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$ssh" "$directory/config" >"$directory/bin/ssh"
chmod +x "$directory/bin/ssh"
export PATH=$directory/bin:$PATH HYDRA_IFACE=fasthosts
for host in 10.99.0.1 10.99.0.2; do
  for ((i = 0; i < 100; ++i)); do ssh -o BatchMode=yes "$host" true 2>/dev/null && break || sleep 0.1; done
done

source "$(dirname "$0")/../support/expect.sh"
pair=(--hosts 10.99.0.1,10.99.0.2 --ppn 1 -n 2)
small=(--samples 600 --model mlp --epochs 1 --quiet)
expect "a rank on each host" 0 "rank 0 on fasthost1" "rank 1 on fasthost2" -- \
  "$fastrun" "${pair[@]}" bash -c 'echo "rank $FASTRUN_RANK on $(hostname)"'
expect "doctor" 0 "ok    host 10.99.0.1 answers to ssh" "ok    host 10.99.0.2 answers to ssh" -- "$fastrun" --doctor "${pair[@]}"
expect "training" 0 "test accuracy" "workers                       2" -- "$fastrun" "${pair[@]}" "$train" "${small[@]}"
expect "one is killed" 0 "rank 1 (process" "on fasthost2" "signal 9" "rank 1 said: last words" "rank 0 survived" "1 of 2" -- \
  "$fastrun" "${pair[@]}" bash -c 'if [[ $FASTRUN_RANK = 1 ]]; then echo "last words" >&2; kill -9 $$; fi; sleep 1; echo "rank 0 survived"'
expect "a host that is not there" 1 "FIX   host 10.99.0.9 answers to ssh" -- "$fastrun" --doctor --hosts 10.99.0.1,10.99.0.9 --ppn 1 -n 2

# SIGTERM to fastrun reaches the ranks of both hosts: all save and end.
terminate() { kill -TERM "$(pgrep -P "$1")"; }
expect_on_the_way "pre-emption" "stopped after" "$directory/run/metrics/0.jsonl" terminate -- \
  "$fastrun" "${pair[@]}" "$train" --samples 4000 --model mlp --epochs 40 --step-ms 10 --quiet \
  --out "$directory/run" --checkpoints "$directory/saved"

# A host is lost in the middle of training, and mpiexec hears of it: the other host's rank goes on without both.
lose_host() {
  ip netns pids fasthost2 | xargs -r kill -9
  "$hosts" unplug 2
}
expect_on_the_way "a host is lost" "lost workers                  1" "$directory/lost/metrics/0.jsonl" lose_host -- \
  "$fastrun" "${pair[@]}" --lost-after 3 "$train" --samples 4000 --model mlp --epochs 12 --step-ms 10 --quiet \
  --suspect-after 1 --out "$directory/lost"
for text in "rank 1 on fasthost2 is out of reach" "1 of 2 ranks ended well"; do
  grep -qF "$text" "$directory/output" || report_failure "a host is lost: no \"$text\""
done
[[ $failures -eq 0 ]] || cat "$directory"/log?
echo "$failures failures"
[[ $failures -eq 0 ]]
