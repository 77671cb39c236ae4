#!/usr/bin/env bash
# gpu.sh [--bundle DIR] [STAGE...]: what fast::cuda does on this machine's card, in one call, tables last. Stages, all of them
# by default; `peers` stands for the three of them:
#   build tests ctest sanitizer train bench peers_lenet peers_resnet20 peers_resnet50 table
# One that fails keeps none of the others from running; what failed is named last, with status 1. Nothing runs longer than
# $LIMIT_S seconds (600). Without a card the script says so and ends with status 77. Logs and JSON go to $OUT (a temporary
# folder) as they come, where `table` finds what `bench` and `peers` have left, in this call or an earlier one.
# With --bundle the programs are those of a folder that scripts/gpu_bundle.sh has packed: nothing is built, `ctest` is without
# ctest, and tests of several processes are a stage of their own, `ipc`. LIMIT_S is 150 then, each stage takes at most
# $STAGE_S seconds (480), and all results are packed into $OUT.tar.gz in the end. PyTorch's rows use the python3 in PATH and
# its own libraries.
set -uo pipefail
bundle=
[[ ${1:-} != --bundle ]] || { bundle=$(realpath -e "${2:-}") && shift 2 || exit 2; }
cd "$(dirname "$(readlink -f "$0")")/.."
out=$(realpath -m "${OUT:-$(mktemp -d)}")
all="build tests ctest sanitizer train bench peers_lenet peers_resnet20 peers_resnet50 table"
if [[ -n $bundle ]]; then
  all="tests ctest ipc ${all#*ctest }"
  ours=("$bundle/run") data=(--data "$bundle/data")
  : "${LIMIT_S:=150}" "${STAGE_S:=480}"
else
  ours=(env "PATH=$PWD/build/cuda/bin:$PATH") data=()
  : "${LIMIT_S:=600}" "${STAGE_S:=100000}"
fi
stages=" ${*:-$all} "
stages=${stages// peers / peers_lenet peers_resnet20 peers_resnet50 }
failed=()

# attempt NAME LINES COMMAND...: shows so many last lines of what it prints.
attempt() {
  local name=$1 lines=$2 status=0 limit=$((stage_end - SECONDS))
  shift 2
  echo "== $name"
  [[ $limit -gt 5 ]] || { echo "$name: left out: the stage has used its $STAGE_S s" && failed+=("$name") && return 1; }
  [[ $limit -lt $LIMIT_S ]] || limit=$LIMIT_S
  timeout -k 10 "$limit" "$@" >"$out/$name.log" 2>&1 || status=$?
  tail -n "$lines" "$out/$name.log"
  [[ $status == 124 ]] && echo "$name: stopped after $limit s"
  [[ $status == 0 || $status == 77 ]] || failed+=("$name")
  return "$status"
}

stage_build() {
  attempt build 20 scripts/build.sh cuda cuda_test cuda_gpu_test cuda_ipc_gpu_test cuda_two_cards_gpu_test fast-train bench_cuda bench_cuda_nn bench_cuda_step || exit 1
}
stage_tests() { attempt tests 60 "${ours[@]}" cuda_gpu_test; }
stage_ctest() {
  [[ -n $bundle ]] || { attempt ctest 30 ctest --preset cuda -R '^cuda_' -E '^cuda_gpu_test$'; return; }
  attempt cuda_test 5 "${ours[@]}" cuda_test
  attempt cuda_train_gpu_test 10 "${ours[@]}" bench/train_gpu_test.sh fast-train mpiexec "${data[@]}"
}
stage_ipc() {
  for ranks in 2 4; do attempt "cuda_ipc_gpu_test_n$ranks" 5 "${ours[@]}" mpiexec -n "$ranks" cuda_ipc_gpu_test; done
  attempt cuda_two_cards_gpu_test_n2 5 "${ours[@]}" mpiexec -n 2 cuda_two_cards_gpu_test
}
# Own kernels alone: those of the libraries take minutes. Memory starts as zeros, so that initcheck has nothing to find.
stage_sanitizer() {
  local sanitizer program
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [[ -x $sanitizer ]] || { echo "compute-sanitizer: skipped: not found"; return; }
  program=$("${ours[@]}" bash -c 'command -v cuda_gpu_test')
  # Some tests make calls that CUDA is to refuse.
  attempt memcheck 5 "${ours[@]}" "$sanitizer" --tool memcheck --kernel-name kns=_ZN4fast4cuda --report-api-errors no --error-exitcode 1 "$program"
  # These tests run all kernels with shared memory. All tests together take longer than a stage.
  attempt racecheck 5 "${ours[@]}" "$sanitizer" --tool racecheck --kernel-name kns=run_blocks --error-exitcode 1 "$program" "a network on the device computes what nn computes*"
}
stage_train() {
  for device in cpu cuda; do  # one worker, LeNet
    attempt "train_$device" 8 "${ours[@]}" fast-train --epochs 2 --quiet --device "$device" "${data[@]}" --summary-json "$out/train_$device.json"
  done
}
stage_bench() {
  attempt bench_cuda 40 "${ours[@]}" bench_cuda --json "$out/bench_cuda.json"
  attempt bench_cuda_nn_lstm 10 "${ours[@]}" bench_cuda_nn --json "$out/bench_cuda_nn_lstm.json" --model lstm
  attempt bench_cuda_step 10 "${ours[@]}" mpiexec -n 2 bench_cuda_step --json "$out/bench_cuda_step.json"
}
# Ours, then PyTorch's, of one model: a comparison is of one stage.
peers() {
  attempt "bench_cuda_nn_$1" 10 "${ours[@]}" bench_cuda_nn --json "$out/bench_cuda_nn_$1.json" --model "${1/lenet/lenet5}"
  for precision in f32 tf32 bf16; do
    for graph in "" --graph; do
      attempt "torch_$1_$precision${graph/--/_}" 1 "bench/peers/$1_torch.py" --precision "$precision" $graph --json "$out/torch_$1_$precision${graph/--/_}.json"
    done
  done
}
stage_peers_lenet() { peers lenet; }
stage_peers_resnet20() { peers resnet20; }
stage_peers_resnet50() { peers resnet50; }
stage_table() { attempt table 20 bench/peers/gpu_table.py "$out"; }

for stage in $stages; do
  [[ " $all " == *" $stage "* ]] || { echo "gpu.sh: $stage is no stage here; choose of $all" >&2; exit 2; }
done
mkdir -p "$out"
pack() { [[ -z $bundle ]] || { tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")" && echo "results: $out.tar.gz"; }; }
if [[ -n $bundle && $stages != table ]]; then
  "${ours[@]}" paths >"$out/paths.log" || exit
  why=$("${ours[@]}" cuda_gpu_test "no such test" 2>&1) || { status=$?; echo "gpu.sh: ${why#skipped: }"; exit $status; }
fi
for stage in $stages; do
  stage_end=$((SECONDS + STAGE_S))
  "stage_$stage"
  [[ $? == 77 && $stage == tests ]] && exit 77
done
pack
[[ ${#failed[@]} == 0 ]] || { echo "failed: ${failed[*]}; logs: $out"; exit 1; }
