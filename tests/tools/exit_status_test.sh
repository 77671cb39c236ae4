#!/usr/bin/env bash
# All programs end with status 2 where their command line is refused, and with 1 where what it names is not there. The
# error is one line.   exit_status_test.sh MPIEXEC PROGRAM...
set -uo pipefail
mpiexec=$1
shift
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
cd "$directory" || exit 1
declare -A path
for program in "$@"; do path[$(basename "$program")]=$program; done

# ends STATUS COMMAND...
ends() {
  local status=$1
  shift
  expect "$*" "$status" -- "$@"
  [[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "$*: not one line"
}
# refuses|lacks PROGRAM ARGUMENT...
refuses() { ends 2 "${path[$1]}" "${@:2}"; }
lacks() { ends 1 "${path[$1]}" "${@:2}"; }

for name in "${!path[@]}"; do
  refuses "$name" --no-such-option
  expect "$name: help" 0 -- "${path[$name]}" --help
done
refuses fastrun -n 4                  # no program
refuses fastrun -n 0 true
refuses fastrun -n 2 --min-workers 3 true
refuses fast-train --epochs x
refuses fast-train --epochs
refuses fast-train --epochs 0
refuses fast-train --exchange local --topology rnig
refuses fast-train --config            # its value is missing
refuses fast-topology
refuses fast-topology show
refuses fast-topology show rnig
refuses fast-topology show ring -n 0
refuses fast-data convert a
refuses fast-data convert a b --shard-size 8XB
refuses fast-model
refuses fast-model export a.safetensors
refuses fast-model evaluate run
refuses fast-model predict run --data digits --part all
refuses fast-train --exchange local --init-map names.txt
refuses fast-trace merge
refuses fast-report
refuses fast-sim --rounds x
refuses fast-sim --topology rnig
refuses fast-serve
refuses fast-serve m=run --port 70000
refuses fast-sites
refuses fast-sites status
refuses fast-sites wait nats://127.0.0.1:1/run --sites 0
refuses fast-sites fetch nats://127.0.0.1:1/run

refuses fast-train --exchange local --data nowhere  # no name of a data set
lacks fast-topology check nowhere.toml
printf "a,b\n1,0\n2\n" >torn.csv
lacks fast-train --exchange local --data torn.csv --target b
lacks fast-data info torn.csv --target b
lacks fast-model info nowhere
lacks fast-model evaluate nowhere --data digits
lacks fast-model predict nowhere --data digits
lacks fast-train --exchange local --data digits --init-weights nowhere
lacks fast-trace merge nowhere
lacks fast-report nowhere
lacks fast-serve m=nowhere
lacks fast-sites status nats://127.0.0.1:1/run

ends 2 "$mpiexec" -n 3 "${path[fast-train]}" --no-such-option
ends 2 "${path[fastrun]}" -n 3 "${path[fast-train]}" --no-such-option
ends 2 "${path[fastrun]}" -np 2 "${path[fast-train]}" --epochs x
ends 1 "${path[fastrun]}" -n 2 /no/such
echo "$failures failures"
[[ $failures -eq 0 ]]
