#!/usr/bin/env bash
# The sshd and the ssh of deploy/kubernetes/mpijob on this machine: as the user 1000:1000 without capabilities and new rights, with
# the job's key as the MPI Operator mounts it. fastrun starts ranks by them.   pods_ssh_test.sh FASTRUN      77: cannot be done here
set -uo pipefail
fastrun=$(readlink -f "$1")
files=$(readlink -f "$(dirname "$0")/../../deploy/container")
[[ $(id -u) -eq 0 ]] || { echo "skipped: another user needs root"; exit 77; }
[[ -x /usr/sbin/sshd ]] || { echo "skipped: no sshd here; apt-get install openssh-server"; exit 77; }
[[ $(mpiexec --version 2>/dev/null) == *HYDRA* ]] || { echo "skipped: fast-ssh is for the mpiexec of MPICH"; exit 77; }
if [[ -z ${PODS_SSH:-} ]]; then
  unshare -m -n --propagation private true 2>/dev/null || { echo "skipped: mounts and networks cannot be separated here"; exit 77; }
  PODS_SSH=1 exec unshare -m -n -p -f --kill-child --propagation private bash "$(readlink -f "$0")" "$@"
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
chmod 755 "$directory"
ip link set lo up
mount -t proc proc /proc
# The user, the home and the programs of the image.
echo "fast:x:1000:1000::/home/fast:/bin/bash" | cat <(grep -vE '^[^:]*:[^:]*:1000:' /etc/passwd) - >"$directory/passwd"
mount --bind "$directory/passwd" /etc/passwd
mount -t tmpfs tmpfs /home
mkdir -p /home/fast/.ssh /home/fast/bin "$directory/key"
cp "$files/sshd_config" /home/fast/.sshd_config
cp "$fastrun" "$files/fast-ssh" /home/fast/bin/
chown -R 1000:1000 /home/fast
# A Secret, with the group of the pod: its owner is root.
ssh-keygen -q -t ecdsa -b 521 -N "" -f "$directory/key/id_rsa" && cp "$directory/key/id_rsa.pub" "$directory/key/authorized_keys"
chown 0:1000 "$directory/key"/*
chmod 640 "$directory/key"/*
mount --bind "$directory/key" /home/fast/.ssh
mount -o remount,bind,ro /home/fast/.ssh

pod() { # COMMAND...: in a container of the MPIJob
  setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i -C /home/fast HOME=/home/fast PATH=/home/fast/bin:/usr/bin:/bin "$@"
}
pod /usr/sbin/sshd -De -f /home/fast/.sshd_config >"$directory/sshd" 2>&1 </dev/null &
for ((i = 0; i < 100; ++i)); do pod fast-ssh -o BatchMode=yes 127.0.0.1 true 2>/dev/null && break || sleep 0.1; done
export -f pod
expect "fast-ssh" 0 "ssh as 1000 without rights 0000000000000000" -- bash -c \
  "pod fast-ssh -o BatchMode=yes 127.0.0.1 'echo \"ssh as \$(id -u) without rights \$(sed -n \"s/CapBnd:\t//p\" /proc/self/status)\"'"
expect "ssh without fast-ssh" 255 "port 22: Connection refused" -- bash -c 'pod ssh -o BatchMode=yes 127.0.0.1 true'
printf '%s\n' "127.0.0.2:1" "127.0.0.3:1" >/home/fast/hostfile
expect "ranks" 0 "rank 0 by ssh" "rank 1 by ssh" -- bash -c 'pod HYDRA_HOST_FILE=/home/fast/hostfile HYDRA_LAUNCHER_EXEC=/home/fast/bin/fast-ssh \
  HYDRA_LAUNCH_EXTRA_ARGS="-o ConnectionAttempts=10" fastrun -n 2 --ppn 1 bash -c "echo \"rank \$FASTRUN_RANK by \${SSH_CONNECTION:+ssh}\""'
[[ $failures -eq 0 ]] || cat "$directory/sshd"
echo "$failures failures"
[[ $failures -eq 0 ]]
