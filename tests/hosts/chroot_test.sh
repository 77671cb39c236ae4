#!/usr/bin/env bash
# Hosts can be made in a chroot whose root is no mount point; where they cannot, `hosts.sh check` says why.   77: cannot be done here
set -uo pipefail
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
unshare -m true 2>/dev/null || { echo "skipped: the root here is no mount point, which the other tests on several hosts show to work"; exit 77; }
mountpoint -q /dev/shm || { echo "skipped: /dev/shm is no mount point"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
export directory
trap '"$hosts" down; rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# in_chroot COMMAND...: in a folder with all of this machine's in it, but for what is not mounted: $without.
cat >"$directory/in_chroot" <<'EOF2'
#!/usr/bin/env bash
root=$directory/root
mkdir -p "$root" && mount -t tmpfs tmpfs "$root" && mkdir "$root/new" && cd / || exit 1
for folder in */; do
  folder=${folder%/}
  if [[ $folder == run ]]; then
    mkdir "$root/new/run" # where names of networks are, which are the chroot's
  elif [[ -L $folder ]]; then
    cp -P "$folder" "$root/new/$folder"
  else
    mkdir "$root/new/$folder" && mount --rbind "$folder" "$root/new/$folder"
  fi
done
[[ -z ${without:-} ]] || { umount -R "$root/new/$without" && mkdir -p "$root/new/$without"; }
exec chroot "$root/new" "$@"
EOF2
chmod +x "$directory/in_chroot"
in_chroot=(unshare -m "$directory/in_chroot")

expect "check" 0 -- "${in_chroot[@]}" "$hosts" check
cat >"$directory/look" <<'EOF2'
#!/usr/bin/env bash
echo "host $(hostname), networks $(echo $(ls /sys/class/net)), process $$"
touch /dev/shm/of_fasthost1
EOF2
chmod +x "$directory/look"
expect "a host" 0 "host fasthost1, networks eth0 lo, process 1" -- "${in_chroot[@]}" bash -c \
  "'$hosts' up 1 && '$hosts' enter 1 '$directory/look' && ls /dev/shm && '$hosts' down"
grep -q of_fasthost1 "$directory/output" && report_failure "a host's /dev/shm is the machine's"
without=sys
export without
expect "without /sys" 1 "hosts cannot have mounts of their own: neither / nor /sys is a mount point" -- "${in_chroot[@]}" "$hosts" check
echo "$failures failures"
[[ $failures -eq 0 ]]
