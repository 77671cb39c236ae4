#!/usr/bin/env bash
# gpu.sh [STAGE...]: what fast::cuda does on this machine's card, in one call, tables last. Stages, all of them by default:
#   build tests ctest sanitizer train bench peers table
# One that fails keeps none of the others from running; what failed is named last, with status 1. Nothing runs longer than
# $LIMIT_S seconds (600). Without a card the script says so and ends with status 77. Logs and JSON go to $OUT (a temporary
# folder), where `table` finds what `bench` and `peers` have left, in this call or an earlier one.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-$(mktemp -d)}
bin=build/cuda/bin
stages=${*:-build tests ctest sanitizer train bench peers table}
failed=()

# attempt NAME LINES COMMAND...: shows so many last lines of what it prints.
attempt() {
  local name=$1 lines=$2 status=0
  shift 2
  echo "== $name"
  timeout -k 10 "${LIMIT_S:-600}" "$@" >"$out/$name.log" 2>&1 || status=$?
  tail -n "$lines" "$out/$name.log"
  [[ $status == 124 ]] && echo "$name: stopped after ${LIMIT_S:-600} s"
  [[ $status == 0 || $status == 77 ]] || failed+=("$name")
  return "$status"
}

stage_build() {
  attempt build 20 scripts/build.sh cuda cuda_test cuda_gpu_test cuda_ipc_gpu_test cuda_two_cards_gpu_test fast-train bench_cuda bench_cuda_nn bench_cuda_step || exit 1
}
stage_tests() { attempt tests 60 "$bin/cuda_gpu_test"; }
stage_ctest() { attempt ctest 30 ctest --preset cuda -R '^cuda_' -E '^cuda_gpu_test$'; }
# Own kernels alone: those of the libraries take minutes. Memory starts as zeros, so that initcheck has nothing to find.
stage_sanitizer() {
  local sanitizer
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [[ -x $sanitizer ]] || { echo "compute-sanitizer: skipped: not found"; return; }
  # Some tests make calls that CUDA is to refuse.
  attempt memcheck 5 "$sanitizer" --tool memcheck --kernel-name kns=_ZN4fast4cuda --report-api-errors no --error-exitcode 1 "$bin/cuda_gpu_test"
  attempt racecheck 5 "$sanitizer" --tool racecheck --kernel-name kns=run_blocks --error-exitcode 1 "$bin/cuda_gpu_test"
}
stage_train() {
  for device in cpu cuda; do  # one worker, LeNet
    attempt "train_$device" 8 "$bin/fast-train" --epochs 2 --quiet --device "$device" --summary-json "$out/train_$device.json"
  done
}
stage_bench() {
  attempt bench_cuda 40 "$bin/bench_cuda" --json "$out/bench_cuda.json"
  attempt bench_cuda_nn 40 "$bin/bench_cuda_nn" --json "$out/bench_cuda_nn.json"
  attempt bench_cuda_step 10 mpiexec -n 2 "$bin/bench_cuda_step" --json "$out/bench_cuda_step.json"
}
stage_peers() {
  for model in lenet resnet20 resnet50; do
    for precision in f32 tf32 bf16; do
      attempt "torch_${model}_$precision" 1 "bench/peers/${model}_torch.py" --precision "$precision" --json "$out/torch_${model}_$precision.json"
    done
  done
}
stage_table() { attempt table 20 bench/peers/gpu_table.py "$out"; }

for stage in $stages; do
  declare -F "stage_$stage" >/dev/null || { echo "gpu.sh: $stage is no stage; choose of build tests ctest sanitizer train bench peers table" >&2; exit 2; }
done
mkdir -p "$out"
for stage in $stages; do
  "stage_$stage"
  [[ $? == 77 && $stage == tests ]] && exit 77
done
[[ ${#failed[@]} == 0 ]] || { echo "failed: ${failed[*]}; logs: $out"; exit 1; }
