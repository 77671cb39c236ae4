#!/usr/bin/env bash
# Feeds mutations of topology/, of models and of requests to their readers under libFuzzer and the sanitizers:  scripts/fuzz.sh [SECONDS]   (60 each)
# Skips, saying why, where there is no clang++ with libFuzzer. Inputs that crash are left in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
if ! command -v clang++ >/dev/null; then
  echo "fuzz: skipped: no clang++ (apt-get install clang)"
  exit 0
fi
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2>/dev/null; then
  echo "fuzz: skipped: clang++ cannot link libFuzzer (apt-get install clang libclang-rt-dev)"
  exit 0
fi
scripts/setup.sh test
scripts/build.sh fuzz topology_fuzz safetensors_fuzz request_fuzz
# fuzz NAME CORPUS: what is found to be of interest is added to build/fuzz/NAME.
fuzz() {
  mkdir -p "build/fuzz/$1"
  "build/fuzz/bin/$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -print_funcs=0 -print_final_stats=1 -artifact_prefix=build/fuzz/ "build/fuzz/$1" "$2"
}
fuzz topology_fuzz topology &
topology=$!
mkdir -p build/fuzz/models
printf '\x50\0\0\0\0\0\0\0%-80s12345678' '{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' >build/fuzz/models/small.safetensors
fuzz safetensors_fuzz build/fuzz/models &
models=$!
mkdir -p build/fuzz/requests
printf '{"instances":[[1,2,3,4],[[1,2],[3,4e1]]],"type":"u8","normalized":true}' >build/fuzz/requests/json
printf 'f1x1x2x2\n0123456789abcdef' >build/fuzz/requests/raw
fuzz request_fuzz build/fuzz/requests &
requests=$!
status=0
wait "$topology" || status=$?
wait "$models" || status=$?
wait "$requests" || status=$?
exit "$status"
