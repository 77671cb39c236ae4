#!/usr/bin/env bash
# Compiles the library for arm64 with a cross compiler and runs tests of it under qemu: those that need neither speed nor
# MPI's launcher. The compiler and arm64's libraries are in a Debian 12 of their own (scripts/bare_machine.sh). qemu shows
# that the code compiles and computes the same; it orders memory as this machine does. Needs root, 1.6 GB of disk before the build, and Debian's
# archive. Status 77, with the reason, where it cannot run.
#   scripts/arm64.sh [--folder DIR] [TARGET...]     default: the tests below. DIR is kept, and used again
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "arm64: $*" >&2; }
skip() { say "skipped: $*" && exit 77; }

folder=
if [[ ${1:-} == --folder ]]; then
  [[ -n ${2:-} ]] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
  folder=$2
  shift 2
fi
targets=("$@")
[[ $# -gt 0 ]] || targets=(core_test codec_test mixing_kernels_test weights_test topology_test slot_model_test exchange_test)
[[ $(id -u) -eq 0 ]] || skip "a chroot needs root"
command -v apt-get >/dev/null || skip "there is no apt here"
[[ $(dpkg --print-architecture) == amd64 ]] || skip "the cross compiler is for amd64; build as usual on this machine"

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

in_machine() {
  scripts/bare_machine.sh run "$root" bash -euo pipefail -c 'cd /root/fast && exec "$@"' in_machine "$@" </dev/null &
  child=$!
  local status=0
  wait $child || status=$?
  child=
  return $status
}

packages=$(grep -v '^#' scripts/packages-arm64.txt | tr '\n' ' ')
install="
  export DEBIAN_FRONTEND=noninteractive
  dpkg --add-architecture arm64
  apt-get update -qq -o APT::Update::Error-Mode=any || exit 77
  apt-get install -y -qq --no-install-recommends $packages >/dev/null
  cd /tmp
  apt-get download -qq libmpich-dev:arm64
  dpkg -x libmpich-dev_*_arm64.deb /
  touch /root/is-installed"
install_packages() {
  local status=0
  in_machine bash -euc "$install" </dev/null || status=$?
  [[ $status -ne 77 ]] || skip "Debian's archive cannot be reached"
  return $status
}
[[ -d $root ]] || scripts/bare_machine.sh make "$root"
mkdir -p "$root/root/fast"
[[ -e $root/root/is-installed ]] || install_packages

# What git has, and what has changed here; times of files that are the same stay, and so do their objects.
git ls-files -z | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$root/root/fast"
options=(-DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1
  -DCMAKE_UNITY_BUILD=ON -DFAST_WERROR=ON -DFAST_BUILD_EXAMPLES=OFF)
in_machine cmake -S . -B build/arm64 -G Ninja -Wno-dev "${options[@]}" >"$folder/configure.log" 2>&1 ||
  { cat "$folder/configure.log" && exit 1; }
in_machine ninja -C build/arm64 "${targets[@]}"
failed=0
for target in "${targets[@]}"; do
  say "$target"
  in_machine qemu-aarch64-static "build/arm64/bin/$target" || failed=1
done
exit $failed
