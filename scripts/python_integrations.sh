#!/usr/bin/env bash
# The Python package with PyTorch 2, Lightning, Accelerate, Transformers and peft from PyPI (6 GB with CUDA's libraries): installs
# all in a virtual environment, and runs the tests and the examples of these frameworks on 1 to 4 ranks, and those of
# PyTorch and torchrun.
#   scripts/python_integrations.sh [FOLDER]     the folder (build/integrations) keeps the environment for the next time
# Status 0 and the reason where Python or PyPI are missing: it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
mkdir -p "${1:-build/integrations}"
folder=$(cd "${1:-build/integrations}" && pwd)
skip() { echo "integrations: skipped: $1"; exit 0; }

python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  skip "no python3 of version 3.11 that makes virtual environments; apt-get install python3-venv"
command -v mpiexec >/dev/null || skip "no mpiexec; apt-get install mpich"
[[ -x $folder/venv/bin/python ]] || python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check -q)
packages=(torch lightning accelerate transformers peft scikit-learn decent-dp pytest)
timeout 3000 "${pip[@]}" --retries 1 --timeout 20 install "${packages[@]}" >"$folder/pip.log" 2>&1 ||
  skip "PyPI is not reachable or lacks a package: $(tail -n 1 "$folder/pip.log")"

export PATH=$folder/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 CCACHE_BASEDIR=$source
# Of another run's MPI or launcher nothing is to be seen.
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT LOCAL_RANK
"${pip[@]}" install --force-reinstall --no-deps "--config-settings=build-dir=$source/build/integrations-python" "$source"
cd "$folder" # not the source: what is tested is what was installed
for package in torch lightning accelerate transformers peft; do
  echo "integrations: $package $(python -c "from importlib.metadata import version; print(version('$package'))")"
done
test=(python -m pytest -q -p no:cacheprovider -rs -W ignore)
for file in test_torch test_halves test_frozen test_lora test_replicas test_mesh_crossings test_training_loops test_torchrun test_runtime test_frameworks; do
  "${test[@]}" "$source/tests/python/$file.py"
done
for ranks in 1 2 3 4; do
  for framework in lightning accelerate transformers; do
    timeout -k 5 600 mpiexec -n "$ranks" "${test[@]}" "$source/tests/python/ranks/test_$framework.py" >"$folder/output" 2>&1 ||
      { cat "$folder/output" && echo "integrations: FAILED: $framework on $ranks ranks" && exit 1; }
    grep -qE '[0-9]+ passed' "$folder/output" || { cat "$folder/output" && echo "integrations: FAILED: nothing ran" && exit 1; }
    echo "integrations: $framework on $ranks ranks: $(grep -E '[0-9]+ passed' "$folder/output" | tail -n 1)"
  done
done
