#!/usr/bin/env bash
# Installs the Python package in a fresh virtual environment, and runs its tests there.
#   package_test.sh install BUILD LIBRARY [CMAKE_BUILD_TYPE] [FAST_WERROR]    LIBRARY: the folder in which CMake has built
#                                      libfast and fastrun, which the package takes from there; CC and CXX: the compilers
#   package_test.sh threads BUILD      tests of one process and its threads
#   package_test.sh programs BUILD     tests that start the examples
#   package_test.sh launchers BUILD    tests that start ranks: spawn(), torchrun, spares
#   package_test.sh notebook BUILD     tests that run the notebook
#   package_test.sh failures BUILD     tests of programs that fail
#   package_test.sh ranks BUILD        tests on 1, 2, 3 and 4 ranks
# Skipped with the reason (status 77) where Python or PyPI are missing. BUILD keeps compiled objects for the next time, and the
# environment.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
what=$1
mkdir -p "$2"
build=$(cd "$2" && pwd)
environment=$build/environment
skip() { echo "skipped: $1"; exit 77; }
step() { # TITLE COMMAND...
  local title=$1 began=$SECONDS
  shift
  "$@" || return # set -e is off in what stands before ||
  echo "python: $title: $((SECONDS - began)) s" >&3
}
exec 3>&1 # where step() writes, also if the command's output goes to a file

install() { # LIBRARY BUILD_TYPE WERROR
  local python= candidate packages settings part cuda=OFF
  rm -rf "$environment"
  for candidate in /usr/bin/python3 python3; do # Debian's own has Debian's PyTorch
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      python=$candidate && break
    fi
  done
  [[ $python ]] || skip "there is no python3 of version 3.11; apt-get install python3"
  "$python" -c 'import venv, ensurepip' 2>/dev/null || skip "$python makes no virtual environments; apt-get install python3-venv"
  "$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    skip "$python has no headers; apt-get install python3-dev"
  # Debian's pip, where it is installed, is seen from the environment, and need not be installed there.
  local own_pip=()
  "$python" -c 'import pip' 2>/dev/null && own_pip=(--without-pip)
  "$python" -m venv --system-site-packages "${own_pip[@]}" "$environment"
  local pip=("$environment/bin/python" -m pip --disable-pip-version-check -q)
  # jax of that version takes the NumPy that Debian's PyTorch is built for.
  packages=(pytest networkx mpi4py 'jax[cpu]<0.4.31' 'numpy<2')
  # The build tools that pip would install in a further environment. scripts/python_package.sh builds in such a one.
  mapfile -t -O "${#packages[@]}" packages < <("$python" -c 'import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"], sep="\n")' "$source/pyproject.toml")
  if ! step "pip install ${packages[*]}" timeout 300 "${pip[@]}" --retries 1 --timeout 10 install "${packages[@]}" >"$build/log" 2>&1; then
    rm -rf "$environment"
    skip "PyPI is not reachable or lacks a package: $(tail -n 1 "$build/log")"
  fi
  export CCACHE_BASEDIR=$source
  for part in runtime dev tools; do
    cmake --install "$1" --prefix "$build/library" --component "$part" >"$build/log" || { cat "$build/log" && return 1; }
  done
  settings=("--config-settings=build-dir=$build/module" "--config-settings=cmake.build-type=$2"
    "--config-settings=cmake.define.FAST_WERROR=$3" "--config-settings=cmake.define.FAST_INSTALLED=ON"
    "--config-settings=cmake.define.CMAKE_PREFIX_PATH=$build/library")
  [[ -e $1/lib/cuda/libfast_cuda.a ]] && cuda=ON
  settings+=("--config-settings=cmake.define.FAST_CUDA=$cuda")
  step "pip install ." "${pip[@]}" install --no-build-isolation "${settings[@]}" "$source"
  # PyTorch brings its own cuDNN and cuBLAS, whose names are the same.
  if readelf -d "$environment"/lib/python3*/site-packages/fast_decentralized/_core*.so | grep -E 'cudnn|cublas|libcuda\.so'; then
    echo "FAILED: the module loads the libraries above" && return 1
  fi
}
if [[ $what == install ]]; then
  install "$3" "${4:-Release}" "${5:-OFF}"
  exit
fi

[[ -x $environment/bin/python ]] || skip "there is no environment; its installation was skipped"
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
export PATH=$environment/bin:$PATH PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# mpi4py of PyPI looks for MPICH by its own name; that of Debian is another.
mpich=$(ldconfig -p | awk '$1 == "libmpich.so.12" { print $NF }' | head -n 1)
if [[ $mpich ]]; then
  mkdir "$directory/lib"
  ln -s "$mpich" "$directory/lib/libmpi.so.12"
  export LD_LIBRARY_PATH=$directory/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
cd "$directory" # not the source: what is tested is what was installed
test=(python -m pytest -q -x -p no:cacheprovider -rs)
programs=("$source"/tests/python/test_package.py)
launchers=("$source"/tests/python/test_{site_rules,sites,spares,spawn,stops,torchrun}.py)
notebook=("$source"/tests/python/test_notebook.py)
failures=("$source"/tests/python/test_{failures,signals}.py)
starting=("${programs[@]}" "${launchers[@]}" "${notebook[@]}" "${failures[@]}")
# Ten minutes, with PyTorch 2.6: scripts/python_integrations.sh runs it.
starting+=("$source"/tests/python/test_{replicas,mesh_crossings}.py)
for part in programs launchers notebook failures; do
  [[ $what == "$part" ]] || continue
  declare -n files=$part
  step "tests" "${test[@]}" --durations 10 --durations-min 2 "${files[@]}"
  exit
done
if [[ $what == threads ]]; then
  step "tests" "${test[@]}" "$source/tests/python" --ignore "$source/tests/python/ranks" "${starting[@]/#/--ignore=}"
  exit
fi
for ranks in 1 2 3 4; do
  step "tests on $ranks ranks" timeout -k 5 360 mpiexec -n "$ranks" "${test[@]}" "$source/tests/python/ranks" >"$directory/output" 2>&1 ||
    { cat "$directory/output" && exit 1; }
  tail -n 1 "$directory/output"
done
