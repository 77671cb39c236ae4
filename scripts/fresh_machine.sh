#!/usr/bin/env bash
# Runs the two commands of the README on a bare Debian 12: a chroot made by mmdebstrap (variant minbase) with a clone of this
# repository's last commit. Prints the time and the disk space that each command took. Needs root, and about 12 GB of disk.
#   --only train|test    one of the two commands
#   --folder DIR         makes the machine in DIR and keeps it; a machine that is there already is used as it is, with what
#                        was built in it. Default: a temporary folder, removed at the end
#   --ccache DIR         compiles with that folder of objects, to try this script out: the times are no longer those of a
#                        fresh machine
#   -- OPTIONS           go to scripts/test.sh, as in:  --only test -- -L install
# Packages come from the Debian sources of this machine's apt, by its proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "fresh_machine: $*" >&2; }
stop() { say "$@" && exit 1; }

only="train test" folder= ccache=
while (($#)); do
  case $1 in
  --only) only=${2:-} && shift 2 ;;
  --folder) folder=${2:-} && shift 2 ;;
  --ccache) ccache=$(realpath "${2:-}") && shift 2 ;;
  --) shift && break ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
for command in $only; do [[ $command == train || $command == test ]] || stop "--only $command: choose train or test"; done
[[ $(id -u) -eq 0 ]] || stop "a chroot needs root; run this as root"
command -v apt-get >/dev/null || stop "this is not a Debian system: there is no apt"
[[ -z $(git status --porcelain) ]] || say "changes that are not committed are not tried"

child= temporary=
[[ -n $folder ]] || { temporary=$(mktemp -d) && folder=$temporary; }
clean_up() {
  [[ -z $child ]] || kill -KILL "$child" 2>/dev/null && wait 2>/dev/null || true # with it goes all that runs in the chroot, and its mounts
  [[ -z $temporary ]] || rm -rf "$temporary"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$folder"
folder=$(realpath "$folder")
root=$folder/root

make_machine() {
  local sources
  sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
    sed -n 's/^\(deb [^ ]* bookworm[^ ]* [^ ]*\) Debian$/\1/p' | sort -u)
  [[ -n $sources ]] || stop "apt has no source of Debian 12 (bookworm) here; add one, run apt-get update, and try again"
  if ! command -v mmdebstrap >/dev/null; then
    say "installing mmdebstrap"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null
  fi
  echo "$sources" >"$folder/sources.list"
  mmdebstrap --quiet --variant=minbase bookworm "$root" "$folder/sources.list"
  apt-config dump | grep -E '^Acquire::(https?|ftp|Check-|Retries)' >"$root/etc/apt/apt.conf.d/99-as-outside" || true
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  printf '%s\n' "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
  hostname >"$root/etc/hostname"
}

clone() {
  local new=$folder/clone
  [[ $(git -C "$root/root/fast" rev-parse HEAD 2>/dev/null) != $(git rev-parse HEAD) ]] || return 0
  rm -rf "$new" && git clone -q --no-hardlinks . "$new"
  mkdir -p "$root/root/fast"
  [[ ! -d $root/root/fast/build ]] || mv "$root/root/fast/build" "$new/build"
  rm -rf "$root/root/fast" && mv "$new" "$root/root/fast"
}

# Runs in namespaces of mounts and processes of its own, so that nothing of it stays.
enter='
set -e
root=$1 ccache=$2
shift 2
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
for name in fd: stdin:/0 stdout:/1 stderr:/2; do ln -s "/proc/self/fd${name#*:}" "$root/dev/${name%:*}"; done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
# Tests on several hosts share names with those outside.
touch /tmp/fasthosts.lock "$root/tmp/fasthosts.lock"
mount --bind /tmp/fasthosts.lock "$root/tmp/fasthosts.lock"
if [ -n "$ccache" ]; then mkdir -p "$root/root/.cache/ccache"; mount --bind "$ccache" "$root/root/.cache/ccache"; fi
exec chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  http_proxy="$http_proxy" https_proxy="$https_proxy" no_proxy="$no_proxy" bash -c "cd /root/fast && exec \"\$@\"" in_machine "$@"
'
in_machine() {
  local status=0
  unshare --mount --pid --fork --kill-child bash -c "$enter" enter "$root" "$ccache" "$@" </dev/null &
  child=$!
  wait $child || status=$?
  child=
  return $status
}

# Of packages as dpkg counts them, which is apt's "additional disk space", and of all files.
packages_kb() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Installed-Size}\n' | awk '{ sum += $1 } END { print sum, NR }'; }
files_kb() { du -skx "$root" | cut -f 1; }

[[ -d $root ]] || make_machine
clone
rows=() failed=
for command in $only; do
  arguments=()
  [[ $command != test ]] || arguments=("$@")
  read -r before_kb before_count < <(packages_kb)
  before_files_kb=$(files_kb)
  SECONDS=0
  in_machine "scripts/$command.sh" "${arguments[@]}" || { say "scripts/$command.sh ended with status $?" && failed=$command; }
  seconds=$SECONDS
  read -r after_kb after_count < <(packages_kb)
  rows+=("$(printf '%-18s %7d %10d %18d %15d' "scripts/$command.sh" $seconds $((after_count - before_count)) \
    $(((after_kb - before_kb) * 1024 / 1000000)) $((($(files_kb) - before_files_kb) * 1024 / 1000000)))")
  [[ -z $failed ]] || break
done
printf '%-18s %7s %10s %18s %15s\n' command seconds packages "packages, MB (apt)" "files, MB (du)"
printf '%s\n' "${rows[@]}"
[[ -z $failed ]]
