#!/usr/bin/env bash
# Runs the two commands of the README on a bare Debian 12 (scripts/bare_machine.sh) with a clone of this repository's last
# commit. Prints the time and the disk space that each command took. Needs root, and about 12 GB of disk.
#   --only train|test    one of the two commands
#   --folder DIR         makes the machine in DIR and keeps it; a machine that is there already is used as it is, with what
#                        was built in it. Default: a temporary folder, removed at the end
#   --ccache DIR         compiles with that folder of objects, to try this script out: the times are no longer those of a
#                        fresh machine
#   --harsh              the machine has no /etc/hosts, its own name has no address, /dev/shm is no mount point, and there is
#                        no ssh. Tests that need one of these are skipped
#   --extra PACKAGE      a package that the lists do not have, installed first; may be repeated
#   -- OPTIONS           go to scripts/test.sh, as in:  --only test -- -L install
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "fresh_machine: $*" >&2; }
stop() { say "$@" && exit 1; }

only="train test" folder= ccache= extra=() harsh=
while (($#)); do
  case $1 in
  --only) only=${2:-} && shift 2 ;;
  --folder) folder=${2:-} && shift 2 ;;
  --ccache) mkdir -p "${2:?}" && ccache=$(realpath "$2") && shift 2 ;;
  --harsh) harsh=1 && shift ;;
  --extra) extra+=("${2:?}") && shift 2 ;;
  --) shift && break ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
for command in $only; do [[ $command == train || $command == test ]] || stop "--only $command: choose train or test"; done
[[ $(id -u) -eq 0 ]] || stop "a chroot needs root; run this as root"
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

clone() {
  local new=$folder/clone
  [[ $(git -C "$root/root/fast" rev-parse HEAD 2>/dev/null) != $(git rev-parse HEAD) ]] || return 0
  rm -rf "$new" && git clone -q --no-hardlinks . "$new"
  mkdir -p "$root/root/fast"
  [[ ! -d $root/root/fast/build ]] || mv "$root/root/fast/build" "$new/build"
  rm -rf "$root/root/fast" && mv "$new" "$root/root/fast"
}

in_machine() {
  local status=0
  HARSH=$harsh BIND=${ccache:+$ccache:/root/.cache/ccache} scripts/bare_machine.sh run "$root" bash -c 'cd /root/fast && exec "$@"' in_machine "$@" </dev/null &
  child=$!
  wait $child || status=$?
  child=
  return $status
}

# Of packages as dpkg counts them, which is apt's "additional disk space", and of all files.
packages_kb() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Installed-Size}\n' | awk '{ sum += $1 } END { print sum, NR }'; }
files_kb() { du -skx "$root" | cut -f 1; }

[[ -d $root ]] || scripts/bare_machine.sh make "$root"
clone
if ((${#extra[@]})); then
  in_machine env DEBIAN_FRONTEND=noninteractive bash -euc 'apt-get update -qq && apt-get install -y -qq "$@" >/dev/null' - "${extra[@]}"
fi
[[ -z $harsh ]] || ! in_machine bash -c 'command -v ssh' || stop "--harsh: the machine in $folder has ssh"
declare -A goals=([train]=240 [test]=1200) # seconds, on two idle cores without ccache
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
  rows+=("$(printf '%-18s %7d %7d %10d %18d %15d' "scripts/$command.sh" $seconds ${goals[$command]} $((after_count - before_count)) \
    $(((after_kb - before_kb) * 1024 / 1000000)) $((($(files_kb) - before_files_kb) * 1024 / 1000000)))")
  [[ -z $failed ]] || break
done
printf '%-18s %7s %7s %10s %18s %15s\n' command seconds goal packages "packages, MB (apt)" "files, MB (du)"
printf '%s\n' "${rows[@]}"
[[ -z $failed ]]
