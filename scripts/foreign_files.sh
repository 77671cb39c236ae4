#!/usr/bin/env bash
# Files of pandas, Pillow, NumPy and tarfile against fast-data, exported models against ONNX Runtime, and outputs on full disks,
# all drawn from a seed, with these packages from PyPI in a virtual environment.
#   scripts/foreign_files.sh [SECONDS [FOLDER]]     (300, build/foreign) the folder keeps the environment for the next time
# Without PyPI, Debian's packages are taken; tests skip what is missing, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-300} folder=${2:-build/foreign}
scripts/build.sh ci fast-data fast-train fast-model fast-topology fast-report fast-trace nn_test
mkdir -p "$folder"
python=/usr/bin/python3
if [[ -x $folder/venv/bin/python ]] || python3 -m venv "$folder/venv" >"$folder/venv.log" 2>&1; then
  if timeout 600 "$folder/venv/bin/pip" --disable-pip-version-check -q --retries 1 --timeout 20 install numpy pandas pillow onnx onnxruntime \
    >"$folder/pip.log" 2>&1; then
    python=$PWD/$folder/venv/bin/python
  else
    echo "foreign files: Debian's packages, since PyPI is not reachable: $(tail -n 1 "$folder/pip.log")"
  fi
fi
bin=$PWD/build/ci/bin
or_skipped() { "$@" || [[ $? == 77 ]]; }
or_skipped "$python" tests/data/foreign_files_test.py "$bin/fast-data" "$seconds"
export FAST_ONNX_PYTHON=$python
for ((i = 0; i < 1 + seconds / 60; ++i)); do or_skipped "$python" tests/tools/onnx_accuracy_test.py "$bin/fast-model" "$bin/fast-train"; done
"$bin/nn_test" "the reference evaluator of ONNX*"
FAST_OUTPUT_DRAWS=$((1 + seconds / 30)) "$python" tests/tools/outputs_test.py "$bin"/fast-{data,train,model,topology,report,trace}
