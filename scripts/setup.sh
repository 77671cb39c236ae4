#!/usr/bin/env bash
# Installs the Debian packages that a build of FAST needs (scripts/packages.txt);  scripts/setup.sh test  those of the
# tests too (scripts/packages-test.txt);  scripts/setup.sh docs  those of the documentation site alone
# (scripts/packages-docs.txt);  scripts/setup.sh deb  what packing needs (scripts/packages-deb.txt);  scripts/setup.sh clang
# what fuzzing needs (scripts/packages-clang.txt). Idempotent: does nothing when all are there. Without root or sudo it prints
# the one line to run and stops. Only apt is used. Ubuntu has the same names. On Fedora it prints the line to run, with Fedora's names
# (scripts/packages-fedora.txt). At the end it says so if mpiexec and mpicc are of two implementations of MPI.
#   FAST_OS_RELEASE=FILE     another file than /etc/os-release, for tests
set -euo pipefail
cd "$(dirname "$0")/.."

lists=(scripts/packages.txt)
case "$*" in
"") ;;
test) lists+=(scripts/packages-test.txt) ;;
docs) lists=(scripts/packages-docs.txt) ;;
deb) lists=(scripts/packages.txt scripts/packages-deb.txt) ;;
clang) lists=(scripts/packages-clang.txt) ;;
*) echo "setup: $* is not a list of packages; give nothing, test, docs, deb or clang" >&2 && exit 2 ;;
esac
packages() { sed -e '/^#/d' -e '/^$/d' "${lists[@]}"; }

# "MPICH" or "Open MPI", by what a program prints; nothing if it is not there or says neither. The library is -lmpi with
# either, unless Debian has built it.
mpi_of() {
  local text
  text=$("$@" 2>&1 </dev/null) || true
  case $text in
  *HYDRA* | *MPICH* | *mpich*) echo MPICH ;;
  *"Open MPI"* | *OpenRTE* | *openmpi*) echo "Open MPI" ;;
  esac
}
check_mpi() {
  local library starter
  library=$(mpi_of mpicc -show) starter=$(mpi_of mpiexec --version)
  [[ -n $library && -n $starter && $library != "$starter" ]] || return 0
  echo "setup: mpiexec is $starter's, and mpicc compiles for $library: each rank would be rank 0 of 1." >&2
  echo "  Choose one MPI for both: update-alternatives --config mpirun; update-alternatives --config mpi" >&2
}

# The words of /etc/os-release that say which system this is, as in "ubuntu debian".
system() { (. "${FAST_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}") || true; }

on_fedora() {
  local package names=() lacking=() name
  while read -r package; do
    name=$(sed -n "s/^${package//+/[+]} //p" scripts/packages-fedora.txt)
    case $name in
    "") echo "setup: scripts/packages-fedora.txt has no line for $package" >&2 && exit 1 ;;
    -*) lacking+=("$package (${name#- })") ;;
    *) rpm -q "$name" >/dev/null 2>&1 || names+=("$name") ;;
    esac
  done < <(packages)
  check_mpi
  [[ ${#names[@]} -gt 0 ]] || exit 0
  echo "setup: packages are missing; run this, then try again:" >&2
  echo "  dnf install -y $(printf '%s\n' "${names[@]}" | awk '!seen[$0]++' | paste -sd ' ')" >&2
  [[ " ${names[*]} " != *" mpich"* ]] || echo "  then, in each shell: module load mpi/mpich-x86_64" >&2
  [[ ${#lacking[@]} -eq 0 ]] || printf 'setup: Fedora has no package of %s\n' "${lacking[@]}" >&2
  exit 1
}

case " $(system) " in
*" fedora "* | *" rhel "*) on_fedora ;;
esac
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is neither Debian, Ubuntu nor Fedora; install the equivalents of ${lists[*]} by hand:" >&2
  echo "  $(packages | paste -sd ' ')" >&2
  exit 1
fi

missing=()
while read -r package; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done < <(packages)
# Open MPI in place of MPICH, as in scripts/open_mpi.sh: do not install a second MPI.
if [[ $(mpi_of mpicc -show) == "Open MPI" && $(mpi_of mpiexec --version) == "Open MPI" ]]; then
  missing=($(printf '%s\n' "${missing[@]}" | grep -vxE 'mpich|libmpich-dev' || true))
fi
[[ ${#missing[@]} -gt 0 ]] || { check_mpi && exit 0; }

if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
  as_root=(sudo)
else
  echo "setup: packages are missing and there is neither root nor sudo; run this, then try again:" >&2
  echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
check_mpi
