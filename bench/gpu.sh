#!/usr/bin/env bash
# gpu.sh: what fast::cuda does on this machine's card, in one call: builds the preset cuda, runs the host-side and the GPU
# tests, under compute-sanitizer too where it is found, and the kernels' bandwidth; tables last. Without a card it says so
# and ends with status 77. JSON goes to $OUT (a temporary folder).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-$(mktemp -d)}
bin=build/cuda/bin
scripts/build.sh cuda cuda_test cuda_gpu_test cuda_ipc_gpu_test cuda_two_cards_gpu_test fast-train bench_cuda bench_cuda_nn >"$out/build.log" || { tail -20 "$out/build.log" >&2; exit 1; }
status=0
"$bin/cuda_gpu_test" >"$out/gpu_test.log" || status=$?
tail -3 "$out/gpu_test.log"
[[ $status == 0 ]] || exit "$status"
ctest --preset cuda -R '^cuda_'
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [[ -x $sanitizer ]]; then
  # Some tests make calls that CUDA is to refuse.
  "$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 1 "$bin/cuda_gpu_test" | tail -3
  "$sanitizer" --tool initcheck --error-exitcode 1 "$bin/cuda_gpu_test" | tail -3
else
  echo "compute-sanitizer: skipped: not found"
fi
for device in cpu cuda; do
  echo "fast-train, one worker, LeNet, 2 epochs, --device $device:"
  "$bin/fast-train" --epochs 2 --quiet --device "$device" --summary-json "$out/train_$device.json" 2>"$out/train_$device.log"
done
"$bin/bench_cuda" --json "$out/bench_cuda.json"
"$bin/bench_cuda_nn" --json "$out/bench_cuda_nn.json"
for model in lenet resnet20 resnet50; do
  for precision in f32 tf32 bf16; do
    bench/peers/${model}_torch.py --precision $precision --json "$out/torch_${model}_$precision.json" || echo "PyTorch's $model: not measured"
  done
done
bench/peers/gpu_table.py "$out"
