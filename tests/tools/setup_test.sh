#!/usr/bin/env bash
# scripts/setup.sh on several systems and with wrong defaults, by commands that only pretend.   setup_test.sh SOURCES
set -uo pipefail
sources=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# pretend NAME TEXT STATUS: a command that prints the text.
mkdir "$directory/bin"
pretend() {
  printf '#!/bin/sh\ncat <<"END"\n%s\nEND\nexit %s\n' "$2" "${3:-0}" >"$directory/bin/$1"
  chmod +x "$directory/bin/$1"
}
pretend dpkg-query "install ok installed"
pretend apt-get "apt-get must not run" 1
pretend sudo "sudo must not run" 1
pretend rpm "not installed" 1
pretend mpiexec "HYDRA build details:"
pretend mpicc "gcc -I/usr/include/x86_64-linux-gnu/mpich -lmpich"
printf 'ID=fedora\nVERSION_ID=42\n' >"$directory/fedora"
printf 'ID=ubuntu\nID_LIKE=debian\n' >"$directory/ubuntu"
printf 'ID=debian\n' >"$directory/debian"
printf 'ID=other\n' >"$directory/other"
on() { # SYSTEM ARGUMENTS...
  local system=$1
  shift
  env PATH="$directory/bin:$PATH" FAST_OS_RELEASE="$directory/$system" "$sources/scripts/setup.sh" "$@"
}
silent() { [[ ! -s $directory/output ]] || report_failure "$1: it printed something"; }
# Functions are no commands for timeout.
export -f on
export directory sources
run=(bash -c 'on "$@"' bash)

expect "debian, all there" 0 -- "${run[@]}" debian && silent "debian, all there"
expect "ubuntu, all there" 0 -- "${run[@]}" ubuntu test && silent "ubuntu, all there"
expect "no such list" 2 "is not a list of packages" -- "${run[@]}" debian nonsense
expect "fedora" 1 "dnf install -y gcc-c++ cmake" "mpich-devel" "highway-devel" "libprometheus-cpp-devel" \
  "module load mpi/mpich-x86_64" "no package of libnats-dev" -- "${run[@]}" fedora
grep -qE "catch2|libeigen3-dev" "$directory/output" && report_failure "fedora: packages of the tests, or Debian's names"
expect "fedora, tests" 1 "catch2-devel" "python3-pyyaml" "no package of nats-server" -- "${run[@]}" fedora test
# Every package has a line, and no line is of a package that has left the lists.
listed=$(cd "$sources/scripts" && sed -e '/^#/d' -e '/^$/d' packages.txt packages-test.txt packages-clang.txt | sort)
named=$(sed -e '/^#/d' -e '/^$/d' -e 's/ .*//' "$sources/scripts/packages-fedora.txt" | sort)
[[ $listed == "$named" ]] || report_failure "packages-fedora.txt: $(diff <(echo "$listed") <(echo "$named"))"
pretend rpm "installed"
expect "fedora, all there" 0 -- "${run[@]}" fedora && silent "fedora, all there"
# MPICH is -lmpi elsewhere than on Debian.
for flags in "-I/usr/include/mpich-x86_64 -L/usr/lib64/mpich/lib" "-I/usr/local/include -L/usr/local/lib"; do
  pretend mpicc "gcc -m64 $flags -lmpi"
  expect "MPICH with $flags" 0 -- "${run[@]}" fedora && silent "MPICH with $flags"
done
pretend mpicc "gcc -I/usr/include/x86_64-linux-gnu/mpich -lmpich"

pretend mpiexec "mpiexec (OpenRTE) 4.1.4"
expect "mpiexec of the other MPI" 0 "mpiexec is Open MPI's, and mpicc compiles for MPICH: each rank would be rank 0 of 1" \
  "update-alternatives --config mpirun" -- "${run[@]}" debian
expect "the same on Fedora" 0 "mpiexec is Open MPI's" -- "${run[@]}" fedora
pretend mpicc "gcc -I/usr/lib/x86_64-linux-gnu/openmpi/include -L/usr/lib/x86_64-linux-gnu/openmpi/lib -lmpi"
expect "Open MPI's both" 0 -- "${run[@]}" debian && silent "Open MPI's both"
pretend dpkg-query "unknown" 1
cat >"$directory/bin/dpkg-query" <<'END'
#!/bin/sh
case $* in *mpich*) exit 1 ;; esac
echo install ok installed
END
expect "Open MPI in place of MPICH" 0 -- "${run[@]}" debian && silent "Open MPI in place of MPICH"
pretend mpiexec "HYDRA build details:"
expect "mpicc of the other MPI" 1 "apt-get" -- "${run[@]}" debian
[[ $failures -eq 0 ]]
