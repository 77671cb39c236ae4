#!/usr/bin/env bash
# Builds and runs the unit and local-exchange tests under the address and thread sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
for preset in asan tsan; do
  PRESET=$preset scripts/test.sh -L unit --quiet
done
