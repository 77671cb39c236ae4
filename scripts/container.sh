#!/usr/bin/env bash
# Builds an image of FAST with buildah, without a daemon.   scripts/container.sh [OPTIONS]
#   --target runtime|development    the image (runtime)
#   --base IMAGE                    what it is built on (docker.io/library/debian:12-slim)
#   --bare                          on a Debian 12 that mmdebstrap makes from this machine's apt: no registry is needed
#   --packages FOLDER               with the packages of scripts/deb.sh that are there; nothing is compiled
#   --cuda 12-6                     with fast-train for GPUs, from NVIDIA's packages of that version
#   --cuda-from FOLDER              the same from a CUDA toolkit of this machine, with cuDNN in it: NVIDIA's archive is not needed
#   --locked                        the versions of deploy/container/packages.lock and no others
#   --write-lock                    writes this file from the new image
#   --tag NAME                      (localhost/fast:VERSION, with -cuda and -development where they apply)
#   --export FOLDER                 the files of the image in a folder too, for a chroot
#   --storage FOLDER                where images are kept (buildah's own place)
# Prints the size of the image. Needs root, or a user that has subordinate ids.
set -euo pipefail
say() { echo "container: $*" >&2; }
stop() { say "$@" && exit 1; }
target=runtime base= bare= packages= cuda= toolkit= locked= write_lock= tag= export= storage=()
while (($#)); do
  case $1 in
  --bare) bare=1 && shift && continue ;;
  --locked) locked=1 && shift && continue ;;
  --write-lock) write_lock=1 && shift && continue ;;
  --target | --base | --packages | --cuda | --cuda-from | --tag | --export | --storage) ;;
  *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
  [[ -n ${2:-} && $2 != --* ]] || { say "$1 needs a value" && exit 2; }
  case $1 in
  --target) target=$2 ;;
  --base) base=$2 ;;
  --packages) packages=$(realpath -m "$2") ;; # of the caller's folder
  --cuda) cuda=$2 ;;
  --cuda-from) toolkit=$(realpath -m "$2") ;;
  --tag) tag=$2 ;;
  --export) export=$(realpath -m "$2") ;;
  --storage) kept=$(realpath -m "$2") && storage=(--root "$kept/images" --runroot "$kept/run" --storage-driver vfs) && mkdir -p "$kept" ;;
  esac
  shift 2
done
cd "$(dirname "$0")/.."
[[ $target == runtime || $target == development ]] || stop "--target $target: choose runtime or development"
[[ -z $cuda || $cuda =~ ^[0-9]+-[0-9]+$ ]] || stop "--cuda $cuda: write the version as NVIDIA's packages do, as in 12-6"
[[ -z $cuda || -z $toolkit ]] || stop "--cuda and --cuda-from exclude each other"
[[ -z $toolkit ]] || { deploy/container/toolkit-libraries "$toolkit" >/dev/null && cuda=toolkit; } || exit 1
found=("$packages"/fast-tools_*.deb)
[[ -z $packages || -e ${found[0]} ]] || stop "--packages $packages: it has no fast-tools_*.deb; run scripts/deb.sh $packages"
[[ -z $export || ! -e $export ]] || stop "--export $export is there already"
command -v buildah >/dev/null || stop "no buildah here; apt-get install buildah"
buildah() { command buildah "${storage[@]}" "$@"; }
version=$(sed -n 's/^project(fast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[[ $target == runtime ]] && kind= || kind=-$target
tag=${tag:-localhost/fast:$version${cuda:+-cuda}$kind}

place=$(mktemp -d)
container=
clean_up() {
  [[ -z $container ]] || { buildah umount "$container"; buildah rm "$container"; } >/dev/null 2>&1 || true
  rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# The context has the files that git knows, so that nothing else can get into an image.
mkdir "$place/context"
git ls-files -z | tar -c --null --files-from=- --ignore-failed-read 2>/dev/null | tar -x -C "$place/context"
[[ -z $packages ]] || { mkdir "$place/context/packages" && cp "$packages"/*.deb "$place/context/packages/"; }

if [[ -n $bare ]]; then
  base=localhost/debian-bare:12
  if ! buildah inspect "$base" >/dev/null 2>&1; then
    scripts/bare_machine.sh make "$place/root"
    # As in debian:12-slim, which has neither perl nor documentation.
    scripts/bare_machine.sh run "$place/root" bash -c 'export DEBIAN_FRONTEND=noninteractive
      apt-get update -qq && apt-get install -y -qq usr-is-merged usrmerge-
      apt-get purge -y -qq usrmerge perl "perl-modules-*" "libperl5*" "lib*-perl"' >/dev/null </dev/null
    rm -rf "$place/root/var/lib/apt/lists" "$place"/root/var/cache/apt/* "$place"/root/usr/share/{man,locale,info}/*
    find "$place/root/usr/share/doc" ! -name copyright ! -type d -delete
    # How this machine reaches Debian stays out of the image.
    echo "deb http://deb.debian.org/debian bookworm main" >"$place/root/etc/apt/sources.list"
    : >"$place/root/etc/apt/apt.conf.d/99-as-outside"
    : >"$place/root/etc/resolv.conf"
    container=$(buildah from scratch)
    buildah add -q "$container" "$place/root" / >/dev/null
    buildah commit -q "$container" "$base" >/dev/null
    buildah rm "$container" >/dev/null
    container=
    rm -rf "$place/root"
  fi
fi
volumes=()
if [[ -n $bare ]]; then
  scripts/bare_machine.sh settings "$place"
  volumes=(--volume "$place/sources.list:/etc/apt/sources.list:ro" --volume "$place/apt.conf:/etc/apt/apt.conf.d/99-as-outside:ro")
fi
isolation=()
[[ $(id -u) -ne 0 ]] || isolation=(--isolation chroot) # works inside a container too
through=() # a proxy of this machine
for name in http_proxy https_proxy no_proxy; do [[ -z ${!name:-} ]] || through+=(--build-arg "$name=${!name}"); done
buildah bud --format docker --target "$target" --tag "$tag" "${isolation[@]}" "${volumes[@]}" ${base:+--build-arg "BASE=$base"} ${cuda:+--build-arg "CUDA=$cuda"} \
  ${toolkit:+--build-context "toolkit=$toolkit"} \
  ${locked:+--build-arg LOCKED=1} "${through[@]}" --build-arg "VERSION=$version" --build-arg "REVISION=$(git rev-parse HEAD)" \
  --build-arg "PORTABLE=${PORTABLE:-OFF}" -f "$place/context/deploy/container/Containerfile" "$place/context"

container=$(buildah from --pull-never "$tag")
root=$(buildah mount "$container")
say "$tag: $(du -sxm --apparent-size "$root" | cut -f 1) MB"
if [[ -n $write_lock ]]; then
  {
    echo "# Debian packages of the runtime image: scripts/container.sh --write-lock. With --locked, these versions are installed."
    awk -F '\t' '$1 !~ /^(fast-tools|libfast-c0)$/ { print $1 "=" $2 }' "$root/usr/share/fast/packages.tsv"
  } >deploy/container/packages.lock
fi
[[ -z $export ]] || { mkdir -p "$(dirname "$export")" && cp -aT "$root" "$export"; }
