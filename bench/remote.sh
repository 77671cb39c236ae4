#!/usr/bin/env bash
# remote.sh BIN [RATE]: what workers on two hosts reach over links of RATE (1gbit; "off": no limit), the hosts being
# network namespaces of this machine (root, iproute2). BIN is the folder of the built programs. Tables on the terminal,
# results under $OUT (a temporary folder). TRAIN=0 leaves the training runs out. NetPIPE sends the same 10 MB, where it is
# installed (apt-get install netpipe-mpich2).
set -euo pipefail
bin=$(readlink -f "${1:?the folder of the built programs}")
rate=${2:-1gbit}
here=$(dirname "$(readlink -f "$0")")
hosts=$here/../tests/hosts/hosts.sh
out=${OUT:-$(mktemp -d)}
why=$("$hosts" check) || { echo "remote.sh: $why" >&2; exit 1; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9
trap '"$hosts" down' EXIT
"$hosts" up 2
"$hosts" rate "$rate"
echo "two hosts, links of $rate"
timeout -k 5 300 "$hosts" run 2 -r 1 "$bin/bench_remote" --json "$out/remote.json" </dev/null 9>&-
netpipe=${NETPIPE:-$(command -v NPmpich2 || true)}
if [[ -n $netpipe ]]; then # half of the time there and back
  timeout -k 5 120 "$hosts" run 2 -r 1 "$netpipe" -l 10000000 -u 10000000 -p 0 -n 10 -o "$out/netpipe" </dev/null 9>&- |
    sed -n 's/.*\( [0-9.]*\) usec.*/\1/p' | awk '{ printf "NetPIPE: %.1f ms for 10 MB in one direction\n", $1 / 1000 }'
fi
[[ ${TRAIN:-1} == 0 ]] && exit 0

# Training to 85 %: neighbors' weights, as they are and coded, against averaged gradients.
train() { # NAME ARGUMENTS...
  local name=$1
  shift
  echo "$name: $*"
  timeout -k 5 600 "$hosts" run 2 -r 1 "$bin/fast-train" --warmup 0.2 --seed 1 --quiet --out "$out/$name" --overwrite \
    "$@" </dev/null >"$out/$name.log" 2>&1 9>&- || { tail -3 "$out/$name.log" >&2; exit 1; }
}
for exchange in allreduce awc awc-stale awc-int8; do
  options=(--topology ring)
  [[ $exchange == allreduce ]] && options=(--exchange allreduce)
  [[ $exchange == awc-stale ]] && options+=(--staleness 1)
  [[ $exchange == awc-int8 ]] && options+=(--codec int8)
  train "lenet-$exchange" --model lenet --epochs 3 --evaluate-every 100 "${options[@]}"
  train "mlp10m-$exchange" --model mlp:2048-2048-2048 --epochs 1 --evaluate-every 50 "${options[@]}"
done
for model in lenet mlp10m; do
  "$here/time_to.py" 85 "$out/$model-allreduce" "$out/$model-awc" "$out/$model-awc-stale" "$out/$model-awc-int8"
done
