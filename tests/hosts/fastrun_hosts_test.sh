#!/usr/bin/env bash
# fastrun --hosts on two hosts, with MPICH or Open MPI: four workers train; then one of them is killed, and the others finish.
# A program that hosts do not have is told of once.
# A replica with a rank on each host ends alone.
#   fastrun_hosts_test.sh FASTRUN FAST_TRAIN REPLICA_ENDS        77: cannot be done here
set -uo pipefail
fastrun=$1 train=$2 replica_ends=$3
source "$(dirname "$0")/../support/hosts.sh" any
command=("$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 4 --min-workers 3 "$train" --model mlp --samples 2000)

"$hosts" up 2
expect "four workers" 0 "4 on 2 hosts" "test accuracy, mean model" -- "${command[@]}" --epochs 1

kill_one() { # of the second host
  ip netns pids fasthost2 | while read -r process; do
    [[ $(cat "/proc/$process/comm" 2>/dev/null) != fast-train ]] || { kill -9 "$process" && break; }
  done
}
expect_on_the_way "a death" "3 of 4 ranks ended well" "$directory/run/metrics/0.jsonl" kill_one -- \
  "${command[@]}" --quiet --epochs 10 --step-ms 15 --suspect-after 1 --out "$directory/run"
grep -q "rank [23] .* died of signal 9" "$directory/output" || report_failure "a death: which one?"

for how in "kill rank 2 was lost" "hang rank 2 has given no sign of life for 4.5 s"; do
  expect "a replica on two hosts: ${how%% *}" 0 "4 of 6 ranks ended well" "replica 1 of 3 ends: ${how#* }; the other replicas go on" -- \
    "$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 3 -n 6 --min-workers 4 "$replica_ends" "${how%% *}" "$directory"
  [[ $(grep -oE '^rank [0-9] ended' "$directory/output" | sort | tr -dc 0-9) == 0145 ]] || report_failure "a replica on two hosts: others ended"
  [[ $(grep -c "replica 1 of 3 ends" "$directory/output") -eq 1 ]] || report_failure "a replica on two hosts: not one line"
done

told_once() { [[ $(grep -c "cannot be started" "$directory/output") -eq 1 ]] || report_failure "$1: not told once"; }
four=("$fastrun" --hosts 10.99.0.1,10.99.0.2 --ppn 2 -n 4)
expect "no host has the program" 1 "fastrun: /no/such cannot be started on fasthost1, fasthost2 (No such file or directory)" -- "${four[@]}" /no/such
told_once "no host has the program"
# Each host has a /dev/shm of its own. The first one gets a program there.
cat >"$directory/shell" <<END
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
host=\$1
shift
[[ \$host != 10.99.0.1 ]] || set -- "ln -s /bin/echo /dev/shm/here &&" "\$@"
exec "$hosts" "\$host" "\$@"
END
chmod +x "$directory/shell"
for enough in "2 0" "3 1"; do # workers that are required, status
  expect "one host has the program: ${enough% *}" "${enough#* }" "it runs" "2 of 4 ranks ended well" \
    "fastrun: /dev/shm/here cannot be started on fasthost2 (No such file or directory)" -- \
    env HYDRA_LAUNCHER_EXEC="$directory/shell" OMPI_MCA_plm_rsh_agent="$directory/shell" "${four[@]}" --min-workers "${enough% *}" /dev/shm/here "it runs"
  told_once "one host has the program: ${enough% *}"
done
echo "$failures failures"
[[ $failures -eq 0 ]]
