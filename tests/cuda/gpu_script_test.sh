#!/usr/bin/env bash
# bench/gpu.sh --bundle goes on after an attempt that fails or takes too long, keeps what was written, and packs it in the end.
# The bundle is a made-up one, so that no card is needed.
set -uo pipefail
script=$(dirname "$(readlink -f "$0")")/../../bench/gpu.sh
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

mkdir -p "$directory/bundle/bench/peers"
cp "$script" "$directory/bundle/bench/"
cat >"$directory/bundle/run" <<'EOF2'
#!/usr/bin/env bash
# Programs of the made-up bundle: the first bench measures, the second takes too long after its first row, the third fails.
case "$*" in
bench_cuda\ *) echo '[1]' >"$3" ;;
bench_cuda_nn\ *) echo '[2]' >"$3" && exec sleep 50 ;;
*bench_cuda_step*) echo "no such device" && exit 1 ;;
*) echo "ran $*" ;;
esac
EOF2
for model in lenet resnet20 resnet50; do
  printf '#!/bin/sh\necho "libraries: $LD_LIBRARY_PATH"\n' >"$directory/bundle/bench/peers/${model}_torch.py"
done
chmod +x "$directory/bundle/run" "$directory"/bundle/bench/peers/*_torch.py
gpu=(env LD_LIBRARY_PATH=its-own "OUT=$directory/results" LIMIT_S=2 "$directory/bundle/bench/gpu.sh" --bundle "$directory/bundle")

expect "two stages" 1 "bench_cuda_nn_lstm: stopped after 2 s" "no such device" "libraries: its-own" "results: $directory/results.tar.gz" \
  "failed: bench_cuda_nn_lstm bench_cuda_step bench_cuda_nn_lenet; logs: $directory/results" -- "${gpu[@]}" bench peers_lenet
tar -xzf "$directory/results.tar.gz" -C "$directory" results/bench_cuda.json results/bench_cuda_nn_lstm.json results/torch_lenet_bf16.log ||
  report_failure "two stages: files are missing from the results"
[[ $(cat "$directory/results/bench_cuda_nn_lstm.json") == '[2]' ]] || report_failure "two stages: what was measured is lost"
expect "a stage's limit" 1 "cuda_ipc_gpu_test_n2: left out: the stage has used its 4 s" -- env STAGE_S=4 "${gpu[@]}" ipc
sed -i 's/ && exec sleep 50//' "$directory/bundle/run"
expect "one peer alone" 0 "== bench_cuda_nn_lenet" "== torch_lenet_bf16" -- "${gpu[@]}" peers_lenet
[[ $(grep -c resnet "$directory/output") -eq 0 ]] || report_failure "one peer alone: others ran, too"
expect "all peers, after another stage" 0 "ran cuda_gpu_test" "== torch_lenet_f32" "== torch_resnet20_f32" "== torch_resnet50_bf16" -- "${gpu[@]}" tests peers
expect "all well" 0 "ran cuda_gpu_test" -- "${gpu[@]}" tests
printf '#!/bin/sh\necho "skipped: cuda: no GPU here: as of today"\nexit 77\n' >"$directory/bundle/run"
sed -i '2i [ "$1" != paths ] || exit 0' "$directory/bundle/run"
expect "no card" 77 "gpu.sh: cuda: no GPU here: as of today" -- "${gpu[@]}" bench
echo "$failures failures"
[[ $failures -eq 0 ]]
