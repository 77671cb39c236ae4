#!/usr/bin/env bash
# Packs what bench/gpu.sh runs into a folder of at most 60 MB, for machines that have a card but no packages:
#   scripts/gpu_bundle.sh [DIR]      (build/gpu-bundle)
# There, with the driver and the libraries of CUDA and cuDNN alone:
#   DIR/bench/gpu.sh --bundle DIR [STAGE...]           all stages, or some
#   DIR/run mpiexec -n 2 fast-train --data DIR/data    any program
# Programs carry libstdc++, and find MPICH and their other libraries beside them. Their glibc must not be newer than the
# machine's. Needs nvcc, cuDNN and the packages of scripts/setup.sh test here. Only ranks of one machine.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=${1:-build/gpu-bundle}
programs=(cuda_test cuda_gpu_test cuda_ipc_gpu_test cuda_two_cards_gpu_test fast-train fastrun bench_cuda bench_cuda_nn bench_cuda_step)
from_outside='lib(cublas|cublasLt|cudnn)\.so'
of_the_system='(libc|libm|libdl|libpthread|librt|libresolv|ld-linux-x86-64|libstdc\+\+|libgcc_s)\.so'
stop() { echo "gpu_bundle: $*" >&2 && exit 1; }
[[ ! -e $bundle || -f $bundle/packed.tar.xz ]] || stop "$bundle is there and no bundle; name another folder"
command -v xz >/dev/null || stop "no xz here; apt-get install xz-utils"

scripts/setup.sh test
scripts/build.sh bundle "${programs[@]}"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place"/{bin,lib/ucx,hydra,absent}
for program in "${programs[@]}"; do strip -o "$place/bin/$program" "build/bundle/bin/$program"; done
cp bench/gpu_bundle/mpiexec "$place/bin/mpiexec"
hydra=$(dirname "$(readlink -f "$(command -v mpiexec.hydra)")")
cp "$hydra"/{mpiexec.hydra,hydra_pmi_proxy} "$place/hydra/"

# libraries_of FILE...: the paths of all that they load, each under the name by which it is loaded.
libraries_of() { ldd "$@" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u; }
# UCX looks for its modules beside itself. cma is the one that serves ranks of one machine.
ucx=$(dirname "$(libraries_of build/bundle/bin/fast-train | grep -F /libucs.so)")/ucx/libuct_cma.so.0
[[ ! -e $ucx ]] || cp -L "$ucx" "$place/lib/ucx/"
for library in $(LD_LIBRARY_PATH=$(dirname "$(sed -n 's/^CUDNN_LIBRARY:[^=]*=//p' build/bundle/CMakeCache.txt)") \
  libraries_of build/bundle/bin/* "$place"/hydra/* "$place"/lib/ucx/* | grep -vE "/$of_the_system|/$from_outside"); do
  cp -L "$library" "$place/lib/"
done

# Programs start without CUDA's libraries where there is no GPU: what they name of them is there, and fails when it is called.
wanted() { nm -D --undefined-only "$place"/bin/* 2>/dev/null | sed -n "s/^ *U \([A-Za-z0-9_]*\)@$1$/\1/p" | sort -u; }
libraries=$(for program in "${programs[@]}"; do readelf -d "$place/bin/$program"; done |
  sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' | grep -E "$from_outside" | sort -u)
for library in $libraries; do
  {
    for name in $(wanted "$library"); do
      [[ $name == *GetErrorString ]] && echo "const char* $name(void) { return \"$library is not there\"; }" || echo "long $name(void) { return 1; }"
    done
  } >"$place/absent.c"
  echo "$library { global: *; };" >"$place/absent.map"
  gcc -shared -fPIC -w -Wl,-soname,"$library" -Wl,--version-script="$place/absent.map" -o "$place/absent/$library" "$place/absent.c"
done
rm -f "$place"/absent.{c,map}

rm -rf "$bundle"
mkdir -p "$bundle"/{bench,data,xz}
echo "$libraries" >"$bundle/libraries"
find "$place"/{bin,lib,hydra} -type f ! -name mpiexec -exec objdump -T {} + | grep -oE "GLIBC_[0-9.]+" | sed "s/GLIBC_//" | sort -V | tail -n 1 >"$bundle/glibc"
cp -L "$(command -v xz)" $(libraries_of "$(command -v xz)" | grep -vE "/$of_the_system") "$bundle/xz/"
tar -c -C "$place" --owner=0 --group=0 --sort=name . | xz -6 -T0 >"$bundle/packed.tar.xz"
cp bench/gpu_bundle/run "$bundle/run"
cp bench/gpu.sh "$bundle/bench/"
cp -r bench/peers "$bundle/bench/peers"
cp tests/cuda/train_gpu_test.sh "$bundle/bench/"
cp /usr/share/datasets/fashion-mnist/*.gz "$bundle/data/"
rm -rf "$bundle/bench/peers/__pycache__"
size=$(du -sb "$bundle" | cut -f 1)
[[ $size -le 60000000 ]] || stop "$bundle has $((size / 1000000)) MB; at most 60 are wanted"
echo "$bundle: $((size / 1000000)) MB, $((($(du -sb "$place" | cut -f 1) - 4096) / 1000000)) MB more once unpacked; needs glibc $(cat "$bundle/glibc"), $(echo $libraries)"
