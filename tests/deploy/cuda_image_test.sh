#!/usr/bin/env bash
# The variant of the runtime image for GPUs, built by buildah from a CUDA toolkit of this machine. No card is needed: a run on the
# CPU in the image gives bit for bit the weights of the bare machine's fast-train, which knows no GPUs; the image has the libraries
# that a run on a GPU loads and nothing else of the toolkit; --device cuda is one error.
#   cuda_image_test.sh PACKAGES FASTRUN FAST_TRAIN [FOLDER]
#     as container_test.sh. CUDA_TOOLKIT=FOLDER: where the toolkit with cuDNN is (/usr/local/cuda)
# 77: cannot be done here
set -uo pipefail
packages=$(realpath "$1") fastrun=$2 train=$3
cd "$(dirname "$0")/../.." || exit 1
source tests/deploy/image.sh
need_root
need_buildah
need_debian
toolkit=${CUDA_TOOLKIT:-/usr/local/cuda}
libraries=$(deploy/container/toolkit-libraries "$toolkit" 2>&1) || { echo "skipped: CUDA_TOOLKIT names no toolkit: $libraries"; exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' INT TERM HUP
folder=${4:-$directory/kept}
mkdir -p "$folder"
source tests/support/expect.sh
root=$folder/cuda
[[ -d $root ]] || scripts/container.sh --bare --packages "$packages" --cuda-from "$toolkit" --storage "$folder/storage" --tag localhost/fast:test-cuda \
  --export "$root" || exit 1

size_mb() { du -scm --apparent-size -L "$@" | tail -n 1 | cut -f 1; }
all_mb=$(du -sxm --apparent-size "$root" | cut -f 1) libraries_mb=$(size_mb $libraries)
echo "cuda image: $all_mb MB, of these $libraries_mb MB of CUDA and cuDNN"
# 250: what container_test.sh allows without GPUs; 50: the kernels of fast-train.
[[ $all_mb -le $((250 + 50 + libraries_mb)) ]] || { echo "$all_mb MB" >"$directory/output" && report_failure "the image has more than it needs"; }
for library in $libraries; do
  cmp "$library" "$root/usr/lib/x86_64-linux-gnu/$(basename "$library")" >"$directory/output" 2>&1 || report_failure "a library: $library"
done
: >"$directory/output"
for file in nvcc ptxas cicc 'libcufft.so*' 'libcusolver.so*' 'libcudart_static.a' 'cudnn*.h' 'libcuda.so*'; do
  [[ -z $(find "$root/usr" "$root/mnt" "$root/opt" -name "$file" -print -quit) ]] || report_failure "the image has $file"
done
[[ -z $(ls "$root/mnt") ]] || report_failure "the folder of the toolkit is in the image"

export -f inside
export directory root
mkdir -p "$directory/shared"
# Everything that the libraries name is there, also what they load later. The driver comes with the machine.
expect "what is loaded" 0 "libcublasLt.so" "libcudnn.so" -- bash -c 'inside ldd /usr/bin/fast-train'
! grep "not found" "$directory/output" >/dev/null || report_failure "what is loaded: something is missing"
expect "what is loaded later" 0 "libz.so" -- bash -c 'inside bash -c "ldd /usr/lib/x86_64-linux-gnu/lib{cublasLt,cudnn,nvrtc}*.so.*"'
! grep "not found" "$directory/output" >/dev/null || report_failure "what is loaded later: something is missing"

same_weights "cuda image" "$fastrun" "$train" --device cpu
# The image's program knows GPUs and finds none. The bare machine's was built without.
expect "no card" 1 "error: --device cuda: cuda: no GPU here: " -- bash -c 'inside fast-train --device cuda'
[[ $(grep -vc '^one worker; start more with: ' "$directory/output") -eq 1 ]] || report_failure "no card: more than a line"
expect "no card for four" 1 "error: --device cuda: cuda: no GPU here: " -- bash -c 'inside fastrun -n 4 fast-train --device cuda'
[[ $(grep -c "no GPU here" "$directory/output") -eq 1 ]] || report_failure "no card for four: not told once"
expect "a program without GPUs" 1 "--device cuda" -- "$train" --device cuda
! grep -q "no GPU here" "$directory/output" || report_failure "the bare machine's fast-train knows GPUs too: the weights are compared with themselves"
echo "$failures failures"
[[ $failures -eq 0 ]]
