#!/usr/bin/env bash
# Fails when a program needs the driver's library or any of its symbols: it would not start where there is no driver.
# symbols_test.sh PROGRAM
set -euo pipefail
program=$1
if nm -D --undefined-only "$program" | grep -E ' U cu[A-Z]'; then
  echo "FAILED: $program refers to the driver's symbols above"
  exit 1
fi
if readelf -d "$program" | grep -F 'libcuda.so'; then
  echo "FAILED: $program is linked to the driver"
  exit 1
fi
nm "$program" | grep -E ' [Tt] cudaGetDeviceCount$' >/dev/null || { echo "FAILED: no CUDA runtime in $program"; exit 1; }
