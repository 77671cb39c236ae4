#!/usr/bin/env bash
# Sends random requests to fast-serve, and compares each answer with what a second implementation expects:
#   scripts/fuzz_requests.sh [REQUESTS [SEED]]   (1000000, 1)
# A million take about 2 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
scripts/build.sh ci fast-serve
python=/usr/bin/python3 # of Debian, which has NumPy
[[ -x $python ]] || python=python3
exec "$python" tests/serve/requests_fuzz.py build/ci/bin/fast-serve --requests "${1:-1000000}" --seed "${2:-1}"
