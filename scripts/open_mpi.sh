#!/usr/bin/env bash
# Builds FAST with Open MPI instead of MPICH, and runs the tests of it, on a Debian 12 of its own (scripts/bare_machine.sh):
# both cannot be the default of one machine. Left out, to save time: LibTorch, dlib, SimGrid, the notebooks, nats-server.
# CMake says so. Tests that need MPICH are skipped by it. Without CTEST OPTIONS, it runs those of the labels unit, mpi and python, but
# not chaos: random failures; and srun --mpi=pmix (slurm_pmix_test). Needs root, 1.3 GB of disk before the build, and Debian's
# archive.
# Status 77, with the reason, where it cannot run.
#   scripts/open_mpi.sh [--folder DIR] [--ccache DIR] [--jobs N] [--target TARGET]... [-- CTEST OPTIONS]
#   --folder DIR         makes the machine in DIR and keeps it; a machine that is there already is used as it is
#   --ccache DIR         a folder of objects of this machine. Default: the one that ccache has here
#   --jobs N             compilers at a time, and tests at a time. Default: the number of cores
#   --target TARGET      builds that alone; may be repeated
#   --place DIR          the place of the sources in the machine. Default: as here, so that ccache finds more
#   --shell              a shell in the machine, instead of the tests
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "open_mpi: $*" >&2; }
skip() { say "skipped: $*" && exit 77; }

folder= ccache= jobs=$(nproc) place=$PWD shell= targets=()
while (($#)); do
  case $1 in
  --folder) folder=${2:-} && shift 2 ;;
  --ccache) ccache=$(realpath "${2:-}") && shift 2 ;;
  --jobs) jobs=${2:-} && shift 2 ;;
  --target) targets+=("${2:-}") && shift 2 ;;
  --place) place=${2:-} && shift 2 ;;
  --shell) shell=1 && shift ;;
  --) shift && break ;;
  *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
[[ $(id -u) -eq 0 ]] || skip "a chroot needs root"
command -v apt-get >/dev/null || skip "there is no apt here"
if [[ -z $ccache ]] && command -v ccache >/dev/null; then
  ccache=$(ccache -p | sed -n 's/.* cache_dir = //p')
  [[ -d $ccache ]] || ccache=
fi

child= temporary=
clean_up() {
  [[ -z $child ]] || kill -KILL "$child" 2>/dev/null && wait 2>/dev/null || true
  [[ -z $temporary ]] || rm -rf "$temporary"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
[[ -n $folder ]] || { temporary=$(mktemp -d) && folder=$temporary; }
mkdir -p "$folder"
root=$(realpath "$folder")/root

# Open MPI refuses to start programs as root, unless it is told twice that this is meant.
settings=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CCACHE_BASEDIR="$place")
in_machine() {
  local status=0
  BIND=${ccache:+$ccache:/root/.cache/ccache} scripts/bare_machine.sh run "$root" \
    env "${settings[@]}" bash -c 'cd "$0" && "$@"; exit $?' "$place" "$@" <&0 & # bash stays: it waits for orphans
  child=$!
  wait $child || status=$?
  child=
  return $status
}

left_out=(mpich libmpich-dev libtorch-dev python3-torch libdlib-dev libblas-dev liblapack-dev libsimgrid-dev libboost-dev
  jupyter-nbconvert python3-ipykernel python3-matplotlib python3-networkx clang-format nats-server libnats-dev)
packages() {
  echo openmpi-bin libopenmpi-dev openssh-client slurm-wlm munge
  cat scripts/packages.txt scripts/packages-test.txt | grep -vxF "$(printf '%s\n' "${left_out[@]}")" | grep -v '^#'
}
list=$(packages | paste -sd ' ')
install="
  export DEBIAN_FRONTEND=noninteractive
  echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/fast # the machine can be made again
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d # packages start no services
  apt-get update -qq -o APT::Update::Error-Mode=any || exit 77
  apt-get install -y -qq --no-install-recommends $list >/dev/null
  echo '$list' >/root/is-installed"
install_packages() {
  local status=0
  in_machine bash -euc "$install" </dev/null || status=$?
  [[ $status -ne 77 ]] || skip "Debian's archive cannot be reached"
  return $status
}
[[ -d $root ]] || scripts/bare_machine.sh make "$root"
mkdir -p "$root$place"
[[ $(cat "$root/root/is-installed" 2>/dev/null) == "$list" ]] || install_packages
[[ -z $shell ]] || { in_machine bash || status=$?; exit "${status:-0}"; }

# What git has, and what has changed here; times of files that are the same stay, and so do their objects.
git ls-files -z | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$root$place"
in_machine cmake --preset ci -Wno-dev -DFAST_CUDA=OFF </dev/null >"$folder/configure.log" 2>&1 ||
  { cat "$folder/configure.log" && exit 1; }
sed -n '/ left out: /s/^-- //p' "$folder/configure.log"
in_machine nice -n 19 ninja -C build/ci -j "$jobs" "${targets[@]:-all}" </dev/null
run_tests() { in_machine nice -n 19 ctest --preset ci -j "$jobs" "$@" </dev/null; }
if [[ $# -gt 0 ]]; then
  run_tests "$@"
else
  status=0
  run_tests -L 'unit|mpi|python' -LE chaos || status=$?
  run_tests -C full -R '^slurm_pmix_test$' || status=$?
  exit $status
fi
