#!/usr/bin/env bash
# Two hosts, one of which has too little shared memory: one error says so.   full_memory_test.sh FASTRUN FAST_TRAIN. 77: cannot be done here.
set -uo pipefail
fastrun=$1 train=$2
source "$(dirname "$0")/../support/hosts.sh" ""
"$hosts" up 2

# A rank on the host whose number is in $small.
cat >"$directory/rank" <<'EOR'
#!/usr/bin/env bash
[[ $(hostname) != fasthost$small ]] || mount -o remount,size=60m /dev/shm
exec "$@"
EOR
chmod +x "$directory/rank"
for small in 1 2; do
  export small
  expect "host $small has little memory" 1 "error: SharedWindow: /dev/shm has " "0 of 4 ranks ended well" -- \
    "$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 4 "$directory/rank" "$train" --samples 600 --model mlp:8000 --quiet --deadline 20
  [[ $(grep -c "error:" "$directory/output") -eq 1 ]] || report_failure "host $small has little memory: not one error"
done
echo "$failures failures"
[[ $failures -eq 0 ]]
