#!/usr/bin/env bash
# The bundle for machines with a card, on a bare machine (a chroot without packages, driver and CUDA): it says that there is no
# GPU, trains on the CPU, and names what is missing where there is a driver.   bundle_test.sh [BUNDLE [BARE_MACHINE]]
# Makes the bundle and the machine that it is not given. 77, with the reason, where that cannot be done.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
[[ $(id -u) -eq 0 ]] || { echo "skipped: a chroot needs root"; exit 77; }
command -v nvcc >/dev/null || [[ -n ${1:-} || -x /usr/local/cuda/bin/nvcc ]] || { echo "skipped: no nvcc (CUDA toolkit 12 or later, cuDNN 9 or later)"; exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' INT TERM
source tests/support/expect.sh
bundle=${1:-$directory/bundle}
root=${2:-$directory/root}
[[ -e $bundle ]] || scripts/gpu_bundle.sh "$bundle" || exit 1
[[ -e $root ]] || scripts/bare_machine.sh make "$root" || exit 1
rm -rf "$root/bundle"
mkdir "$root/bundle" && (cd "$bundle" && tar -c --exclude=./unpacked .) | tar -x -C "$root/bundle"
in_machine() { scripts/bare_machine.sh run "$root" "$@"; }
export -f in_machine
export root

size=$(du -sm "$root/bundle" | cut -f 1)
[[ $size -le 60 ]] || report_failure "the bundle has $size MB"
expect "all stages" 77 "gpu.sh: cuda: no GPU here: " -- bash -c 'in_machine /bundle/bench/gpu.sh --bundle /bundle'
[[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "all stages: more than a line"
expect "a stage" 77 "gpu.sh: cuda: no GPU here: " -- bash -c 'in_machine /bundle/bench/gpu.sh --bundle /bundle bench'
expect "no such stage" 2 "gpu.sh: build is no stage here; choose of tests ctest ipc" -- bash -c 'in_machine /bundle/bench/gpu.sh --bundle /bundle build'
expect "a device that is not there" 1 "error: --device cuda: cuda: no GPU here: " -- \
  bash -c 'in_machine /bundle/run fast-train --device cuda --data /bundle/data'
expect "an epoch of two workers on the CPU" 0 "test accuracy, mean model" "workers                       2" -- bash -c \
  'in_machine /bundle/run mpiexec -n 2 fast-train --device cpu --data /bundle/data --epochs 1 --samples 20000 --quiet'
expect "what was found" 0 "driver: none" "missing: libcublasLt.so" -- bash -c 'in_machine /bundle/run paths'
# With a driver, here an empty file, what CUDA's libraries are missing is an error.
expect "a driver alone" 78 "run: no libcublasLt.so" "libcudnn.so" "/driver" -- \
  bash -c 'in_machine bash -c "mkdir -p /driver; touch /driver/libcuda.so.1; CUDA_LIBRARIES=/driver /bundle/run cuda_gpu_test"'
expect "an older glibc" 78 "the programs need glibc 99.9 or later, this machine has 2.36" -- \
  bash -c 'in_machine bash -c "cp -r /bundle /older; echo 99.9 >/older/glibc; /older/run cuda_gpu_test"'
echo "$failures failures"
[[ $failures -eq 0 ]]
