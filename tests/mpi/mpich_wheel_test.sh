#!/usr/bin/env bash
# FAST as it was built, with the library and the mpiexec of PyPI's mpich in place of Debian's: all of MPICH since 3.1 have one
# ABI. Weights at staleness 0 are the same bit for bit.   mpich_wheel_test.sh FAST-TRAIN FASTRUN GOLDEN-TEST
# Status 77, with the reason, where PyPI cannot be reached or FAST uses another MPI.
set -uo pipefail
train=$1 fastrun=$2 golden=$3
skip() { echo "skipped: $*" && exit 77; }
fail() { echo "FAILED: $*" && cat "$directory/log" && exit 1; }
own=$(ldd "$train" | sed -n 's/^[[:space:]]*\(libmpich\.so\.12\) .*/\1/p')
[[ $own ]] || skip "fast-train does not load libmpich.so.12"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
python3 -m venv "$directory/venv" >"$directory/log" 2>&1 || skip "no virtual environment; apt-get install python3-venv"
timeout 200 "$directory/venv/bin/pip" --disable-pip-version-check -q --retries 1 --timeout 10 install mpich >"$directory/log" 2>&1 ||
  skip "PyPI is not reachable: $(tail -n 1 "$directory/log")"
bin=$directory/venv/bin lib=$directory/venv/lib
[[ -e $lib/libmpi.so.12 ]] || skip "the package mpich has no libmpi.so.12"
mkdir "$directory/abi"
ln -s "$lib/libmpi.so.12" "$directory/abi/$own"
version=$("$bin/mpichversion" | sed -n 's/^MPICH Version:[[:space:]]*//p')
run=(--samples 2000 --epochs 1 --model mlp:16 --quiet --seed 1 --topology ring --data fashion-mnist)
timeout 60 mpiexec -n 4 "$train" "${run[@]}" --out "$directory/before" </dev/null >"$directory/log" 2>&1 || fail "Debian's MPICH"
export LD_LIBRARY_PATH=$directory/abi:$lib:$lib/mpich PATH=$bin:$PATH
timeout 60 mpiexec -n 4 "$train" "${run[@]}" --out "$directory/after" </dev/null >"$directory/log" 2>&1 || fail "MPICH $version"
cmp "$directory"/{before,after}/mean-model.safetensors || fail "MPICH $version has other weights"
timeout 60 mpiexec -n 5 "$golden" </dev/null >"$directory/log" 2>&1 || fail "golden trajectories with MPICH $version"
timeout 60 "$fastrun" -n 3 "$train" "${run[@]}" </dev/null >"$directory/log" 2>&1 || fail "fastrun with MPICH $version"
echo "MPICH $version: weights bit for bit, golden trajectories, fastrun"
