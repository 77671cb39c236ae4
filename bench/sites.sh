#!/usr/bin/env bash
# sites.sh BIN [--seconds 40] [--cells REGEX] [--every 50]: how fast sites train over slow links. Three places and three linked NATS servers,
# each on a host of its own (network namespaces of this machine with a switch in user space: root, iproute2, /dev/net/tun,
# nats-server). The places do not reach each other. BIN is the folder of the built programs: storm_site, fast-train and switch.
# Steps take 40 ms and do not compute; the model has 2 MB (cells .5mb: 500 kB); an exchange follows every 50 steps (--every).
# Prints one line a cell: the speed ÷ that of a site which is alone meanwhile, the median age of what was combined ÷ 50 steps, the
# megabytes that a site has received, ÷ those of the messages that it has combined. Cell mpi: fast-train on three hosts with links of
# 1 Gbit/s: the milliseconds of a step without exchanges, as workers of one job over MPI, and as sites, with an exchange every 10 steps.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
hosts=${HOSTS:-$here/../tests/hosts/hosts.sh}
bin=$(readlink -f "${1:?the folder of the built programs}")
shift
seconds=40 only=. every=50
while (($#)); do
  case $1 in
  --seconds) seconds=${2:?} && shift 2 ;;
  --cells) only=${2:?} && shift 2 ;;
  --every) every=${2:?} && shift 2 ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
why=$("$hosts" check switch) || { echo "sites.sh: skipped: $why" >&2; exit 77; }
command -v nats-server >/dev/null || { echo "sites.sh: skipped: nats-server is not installed" >&2; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 300 9 || { echo "sites.sh: other tests have used the hosts of this machine for five minutes" >&2; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
"$hosts" up 6 --switch "$bin/switch"
on() { nsenter --net="/run/netns/fasthost$1" "${@:2}"; } # HOST COMMAND...
routes=$(seq -f 'nats://10.99.0.%g:6222' -s , 4 6)
for i in 4 5 6; do
  on $i nats-server -a 10.99.0.$i -p 4222 --cluster_name sites --cluster nats://10.99.0.$i:6222 --routes "$routes" --no_advertise \
    >"$directory/server$i.txt" 2>&1 9>&- &
done
sleep 2

cell() { # NAME LINK STALENESS ELEMENTS DELAY CODEC
  [[ $1 =~ $only ]] || return 0
  local i j until
  "$hosts" link all clear
  for i in 1 2 3; do
    for j in 1 2 3; do [[ $i -ge $j ]] || "$hosts" link $i $j cut; done
    for j in 4 5 6; do "$hosts" link $i $j $2; done
  done
  until=$(($(date +%s) + seconds))
  for i in 1 2 3; do
    local urls=nats://10.99.0.$((3 + i)):4222,nats://10.99.0.$((4 + i % 3)):4222/run-$1
    on $i "$bin/storm_site" place$i "$urls" $i "$3" 0.04 $until "$4" "$every" "$5" "$6" 3 >"$directory/$1.$i.json" 2>&1 9>&- &
    pids[i]=$!
  done
  on 1 "$bin/storm_site" alone nats://10.99.0.4:4222/alone-$1 1 1 0.04 $until "$4" "$every" >"$directory/$1.0.json" 2>&1 9>&- &
  pids[0]=$!
  for i in 0 1 2 3; do wait ${pids[i]} || true; done
  python3 - "$1" "$4" "$6" "$every" "$directory/$1".*.json <<'FIGURES'
import json, statistics, sys
name, elements, codec, every = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
width = {"identity": 4, "bf16": 2, "int8": 1 + 1 / 64, "int4": 0.5 + 1 / 64, "int2": 0.25 + 1 / 32}[codec]
speeds, ages, ratios, left_out, alone = [], [], [], 0, None  # the first file is that of the site alone
for path in sys.argv[5:]:
    lines = [json.loads(line) for line in open(path)]
    for line in lines:
        if "error" in line:
            print(f"{name}: {line['error']}")
    own = [line for line in lines if "taken" in line]
    if len(own) < 5:
        print(f"{name}: {path} has made {len(own)} exchanges")
        if alone is None:
            sys.exit()
        continue
    received = own[-1]["received"] - own[2]["received"]  # without the states of the beginning
    own = own[2:]
    times = [after["time"] - before["time"] for before, after in zip(own, own[1:])]
    if alone is None:
        alone = statistics.mean(times)
        continue
    speeds.append(alone / statistics.mean(times))
    ages.append(own[-1]["age"] / every)
    taken = sum(len(line["taken"]) for line in own[1:])
    ratios.append(received / (taken * elements * width) if taken else float("nan"))
    left_out += own[-1]["left_out"]
if speeds:
    print(f"{name:32} speed {min(speeds):.3f}  age {statistics.median(ages):.2f}  received {max(ratios):.2f}  left out {left_out}", flush=True)
FIGURES
}
# The median of three, without a delay of the exchange and with one of 9 steps: seconds are those of training alone.
against_mpi() {
  [[ mpi =~ $only ]] || return 0
  local i run delay
  local training=(--data digits --resize 28x28 --model mlp:640 --batch-size 2 --epochs 1 --step-ms 40 --closing-rounds 0 --quiet)
  "$hosts" link all clear
  "$hosts" link all rate=1gbit
  train() { timeout -k 5 100 "$@" --summary-json "$directory/$kind.$run.json" </dev/null >"$directory/$kind.$run.txt" 2>&1 9>&- ||
    tail -3 "$directory/$kind.$run.txt" >&2; }
  for ((run = 0; run < 3; ++run)); do
    kind=alone train "$hosts" enter 1 "$bin/fast-train" "${training[@]}" --samples 300
    for delay in 0 9; do
      kind=mpi,$delay train "$hosts" run 3 -r 1 "$bin/fast-train" "${training[@]}" --samples 900 --topology ring --algorithm gasloc \
        --algorithm-option period=10 --algorithm-option delay=$delay
      for i in 1 2 3; do
        kind=sites,$delay,$i train "$hosts" enter $i "$bin/fast-train" "${training[@]}" --samples 300 --site place$i \
          --site-url nats://10.99.0.$((3 + i)):4222/mpi-$run-$delay --site-every 10 --site-expect 3 --site-algorithm-option delay=$delay &
        pids[i]=$!
      done
      for i in 1 2 3; do wait ${pids[i]} || true; done
    done
  done
  python3 - "$directory" <<'FIGURES'
import json, pathlib, statistics, sys
steps = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    kind = path.name.split(".")[0].split(",")
    if kind[0] in ("alone", "mpi", "sites"):
        summary = json.loads(path.read_text())
        steps.setdefault(", delay ".join(kind[:2]), []).append(1000 * summary["seconds"] / summary["rounds"])
for kind, found in steps.items():
    print(f"1gbit, every 10, {kind:16} {statistics.median(found):6.2f} ms a step ({min(found):.2f} to {max(found):.2f})", flush=True)
FIGURES
}
slow="rate=10mbit delay=25ms" fast="rate=100mbit delay=5ms" # one way; a message passes two links
cell 10mbit.waiting "$slow" 0 500000 0 identity
cell 10mbit.delay45 "$slow" 0 500000 45 identity
cell 10mbit.never "$slow" 1 500000 0 identity
cell 10mbit.waiting.int8 "$slow" 0 500000 0 int8
cell 10mbit.waiting.int4 "$slow" 0 500000 0 int4
cell 10mbit.delay45.int8 "$slow" 0 500000 45 int8
cell 10mbit.never.int8 "$slow" 1 500000 0 int8
cell 10mbit.delay45.5mb "$slow" 0 125000 45 identity
cell 10mbit.loss.delay45.int4 "$slow loss=1%" 0 500000 45 int4
cell 10mbit.loss.never.int8 "$slow loss=1%" 1 500000 0 int8
cell 100mbit.waiting "$fast" 0 500000 0 identity
cell 100mbit.delay10 "$fast" 0 500000 10 identity
against_mpi
