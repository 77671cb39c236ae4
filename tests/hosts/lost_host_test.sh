#!/usr/bin/env bash
# One of four hosts is lost at a random moment: the other three finish, evaluate and save.
#   lost_host_test.sh FASTRUN FAST_TRAIN [--count N] [--seed S]        77: cannot be done here
set -uo pipefail
fastrun=$1 train=$2 count=1 seed=$RANDOM
shift 2
while [[ $# -gt 1 ]]; do
  case $1 in
  --count) count=$2 ;;
  --seed) seed=$2 ;;
  *) echo "no option $1" && exit 2 ;;
  esac
  shift 2
done
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
source "$(dirname "$0")/../support/expect.sh"
export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$hosts HYDRA_IFACE=fasthosts
echo "seed $seed"
RANDOM=$seed

samples=2400 lost_after_s=3
four=(-n 4 --hosts 10.99.0.1,10.99.0.2,10.99.0.3,10.99.0.4 --ppn 1 --lost-after $lost_after_s)
training=(--model mlp --batch-size 20 --epochs 10 --quiet --seed "$seed")
accuracy() { sed -n 's/.*test accuracy, mean model *\([0-9.]*\) %.*/\1/p' "$directory/output"; }

# The survivors have trained on three quarters of the samples at least. So have three workers that share three quarters of
# them from the start. Two such runs differ by half a point.
expect "three from the start" 0 -- env -u HYDRA_IFACE "$fastrun" -n 3 "$train" "${training[@]}" --samples $((samples * 3 / 4))
least=$(awk "BEGIN { print $(accuracy) - 1 }")

# The ways to be lost. In each of them the host has no link afterwards.
killed() { # its kernel tells the others
  ip netns pids "fasthost$1" | xargs -r kill -9
  "$hosts" unplug "$1"
}
gone() { "$hosts" lose "$1"; }      # nobody is told
cut_off() { "$hosts" unplug "$1"; } # its rank lives on, alone
ways=(killed gone cut_off)

still_trains() { [[ $(ip netns pids "fasthost$1" | xargs -r -I{} cat /proc/{}/comm 2>/dev/null) == *fast-train* ]]; }
lose() {
  sleep "$moment_s"
  "$way" "$victim"
  for ((i = 0; i < 10 * (lost_after_s + 5); ++i)); do still_trains "$victim" || return; sleep 0.1; done
  touch "$directory/lives"
}

for ((run = 0; run < count; ++run)); do
  victim=$((RANDOM % 4 + 1)) way=${ways[RANDOM % 3]} moment_s=$(awk "BEGIN { print $((RANDOM % 300)) / 100 }")
  title="host $victim $way after $moment_s s"
  "$hosts" up 4
  out=$directory/run$run
  survivor=$((victim == 1)) # a rank that is not on that host
  began=$SECONDS
  expect_on_the_way "$title" "3 of 4 ranks ended well" "$out/metrics/$survivor.jsonl" lose -- \
    "$fastrun" "${four[@]}" --min-workers 3 "$train" "${training[@]}" --samples $samples --step-ms 10 --suspect-after 1 --out "$out"
  found=$(accuracy)
  echo "$title: $found %, at least $least % required; $((SECONDS - began)) s"
  grep -qF "rank $((victim - 1)) on fasthost$victim is out of reach" "$directory/output" || report_failure "$title: who is lost?"
  grep -qF "lost workers                  $((victim - 1))" "$directory/output" || report_failure "$title: the summary names another worker"
  awk "BEGIN { exit !(${found:-0} >= $least) }" || report_failure "$title: an accuracy of $found"
  [[ -s $out/mean-model.safetensors ]] || report_failure "$title: nothing is saved"
  [[ ! -e $directory/lives ]] || report_failure "$title: its rank has not ended"
done

# Before training nobody can do without the host.
cat >"$directory/rank" <<'EOF'
#!/usr/bin/env bash
[[ $FASTRUN_RANK != 2 ]] || { echo waiting >"$directory/last" && sleep 50; }
exec "$@"
EOF
chmod +x "$directory/rank"
export directory
"$hosts" up 4
timeout -k 5 60 "$fastrun" "${four[@]}" --start-deadline 2 "$directory/rank" "$train" "${training[@]}" --samples $samples \
  </dev/null >"$directory/output" 2>&1 9>&- &
for ((i = 0; i < 200; ++i)); do [[ -s $directory/last ]] && break || sleep 0.1; done
sleep 1
began=$SECONDS
"$hosts" lose 3
wait $!
status=$?
echo "before training: $((SECONDS - began)) s"
[[ $status -eq 1 ]] || report_failure "before training: status $status"
[[ $((SECONDS - began)) -lt 25 ]] || report_failure "before training: it took $((SECONDS - began)) s"
[[ $(grep -c "rank 2 on fasthost3 is out of reach" "$directory/output") -eq 1 ]] || report_failure "before training: who is lost?"
[[ $(grep -c "^fastrun:" "$directory/output") -le 3 ]] || report_failure "before training: more than the cause, the consequence and the result"
echo "$failures failures"
[[ $failures -eq 0 ]]
