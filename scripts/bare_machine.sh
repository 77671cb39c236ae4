#!/usr/bin/env bash
# A Debian 12 without packages, of mmdebstrap's variant minbase, in a folder. Needs root.
#   bare_machine.sh make FOLDER               from the Debian sources of this machine's apt, by its proxy; installs mmdebstrap
#   bare_machine.sh settings FOLDER           writes sources.list and apt.conf, as such a machine has them, into the folder
#   bare_machine.sh run FOLDER COMMAND...     in a chroot with /dev, /dev/shm, /proc and /sys, and namespaces of mounts and
#                                             processes of its own: nothing of it is left once it, or this script, has ended.
#                                             BIND="FROM:TO ..." shows folders of this machine there. HARSH=1: without
#                                             /etc/hosts, with a name that has no address, and /dev/shm is no mount point
set -euo pipefail
say() { echo "bare_machine: $*" >&2; }
stop() { say "$@" && exit 1; }
[[ $# -ge 2 ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
[[ $(id -u) -eq 0 ]] || stop "a chroot needs root; run this as root"
command=$1 root=$(realpath -m "$2")
shift 2

debian_sources() {
  local sources
  command -v apt-get >/dev/null || stop "this is not a Debian system: there is no apt"
  sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
    sed -n 's/^\(deb [^ ]* bookworm[^ ]* [^ ]*\) Debian$/\1/p' | sort -u)
  [[ -n $sources ]] || stop "apt has no source of Debian 12 (bookworm) here; add one, run apt-get update, and try again"
  echo "$sources"
}
apt_settings() { apt-config dump | grep -E '^Acquire::(https?|ftp|Check-|Retries)' || true; }

make_machine() {
  local sources
  sources=$(debian_sources)
  if ! command -v mmdebstrap >/dev/null; then
    say "installing mmdebstrap"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null
  fi
  echo "$sources" | mmdebstrap --quiet --variant=minbase bookworm "$root" -
  apt_settings >"$root/etc/apt/apt.conf.d/99-as-outside"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
  hostname >"$root/etc/hostname"
}

enter='
set -eu
root=$1
shift
if [ -n "${HARSH:-}" ]; then
  mount --bind "$root" "$root" # "/" is a mount point, as in a container
  hostname nameless-host
  rm -f "$root/etc/hosts"
fi
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
for name in fd: stdin:/0 stdout:/1 stderr:/2; do ln -s "/proc/self/fd${name#*:}" "$root/dev/${name%:*}"; done
mkdir -m 1777 "$root/dev/shm"
mkdir "$root/dev/pts"
[ -n "${HARSH:-}" ] || mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
# Tests on several hosts share names with those outside.
touch /tmp/fasthosts.lock "$root/tmp/fasthosts.lock"
mount --bind /tmp/fasthosts.lock "$root/tmp/fasthosts.lock"
for pair in ${BIND:-}; do
  mkdir -p "$root${pair#*:}"
  mount --bind "${pair%%:*}" "$root${pair#*:}"
done
exec chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" "$@"
'

case $command in
make) [[ ! -e $root ]] || stop "$root is there already" && make_machine ;;
settings)
  debian_sources >"$root/sources.list"
  apt_settings >"$root/apt.conf"
  ;;
run)
  [[ -d $root/proc ]] || stop "no machine in $root; make one first"
  exec unshare --mount --uts --pid --fork --kill-child bash -c "$enter" enter "$root" "$@"
  ;;
*) stop "$command: choose make, settings or run" ;;
esac
