#!/usr/bin/env bash
# The Job of deploy/kubernetes/job without Kubernetes: four pods with the files of the built image, which they cannot change,
# in network namespaces, with the volumes, the user and the entry point of the Job, and names by hosts files.
#   image_pods_test.sh ROOT      ROOT: the image, by  scripts/container.sh --export ROOT. 77: cannot be done here
# A run in pods gives bit for bit the weights of a run in one container. Then a pod is killed; a new one of another address
# takes its place, and the run comes to its end with an accuracy like that of the first one.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(realpath "${1:?the files of the runtime image}")
[[ -x $root/usr/bin/fast-pods && -x $root/usr/bin/fast-train ]] || { echo "$root has no fast-pods and fast-train; scripts/container.sh --export makes it" && exit 1; }
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: no PyYAML; apt-get install python3-yaml"; exit 77; }
source "$here/../support/hosts.sh" ""
settings=$(PYTHONDONTWRITEBYTECODE=1 python3 "$here/pod_settings.py") || exit 1
eval "$settings" # command variables user group folder places read_only
[[ $read_only -eq 1 ]] || { echo "the Job's file system can be written: these pods' cannot" && exit 1; }
"$hosts" up 5
mkdir "$directory/shared" "$directory/options"
chown "$user:$group" "$directory/shared"
touch "$directory/output" "$directory/begin"
running=() # process of each pod on this machine

place_of() { # PLACE=VOLUME of the Job: with what stands for the volume here
  case $1 in
  *=shared) echo "${1%=*}=$directory/shared" ;;
  *=options) echo "${1%=*}=$directory/options:ro" ;;
  *) echo "$1" ;;
  esac
}
# container I ADDRESS VARIABLE... -- COMMAND...: pod I with the address 10.99.0.ADDRESS, until it ends.
container() {
  local number=$1 address=$2 own=("${variables[@]}") each
  shift 2
  while [[ $1 != -- ]]; do own+=("$1") && shift; done
  printf '%s\n' "127.0.0.1 localhost" "10.99.0.1 fast-0.fast" "10.99.0.$address fast-$number.fast fast-$number" >"$directory/hosts-$number"
  export IMAGE_POD IMAGE_POD_PLACES IMAGE_POD_VARIABLES IMAGE_POD_USER=$user:$group IMAGE_POD_FOLDER=$folder
  IMAGE_POD=$(mktemp -d "$directory/pod-XXXXXX")
  IMAGE_POD_PLACES=$(for each in "${places[@]}"; do place_of "$each"; done && echo "/etc/hosts=$directory/hosts-$number:ro")
  IMAGE_POD_VARIABLES=$(printf '%s\n' "${own[@]}" "JOB_COMPLETION_INDEX=$number")
  exec "$here/image_pod.sh" "fasthost$address" "fast-$number" "$root" "${@:2}" </dev/null 9>&-
}
# pod I ADDRESS [VARIABLE...]: starts it with the Job's entry point in the background.
pod() {
  (container "$@" FAST_DEADLINE=60 -- "${command[@]}") >>"$directory/out-$1" 2>&1 &
  running[$1]=$!
}
first_process() { pgrep -P "${running[$1]}"; } # of pod I; all others end with it
all_out() { cat "$directory"/out-* >"$directory/output"; }
said() { grep -qF "$1" "$directory"/out-*; }
has_epoch() { [[ $(results "$directory/shared/run/metrics/0.jsonl")0 -ge 10 ]]; }
# wait_until SECONDS COMMAND...: fails the test after that time.
wait_until() {
  local most=$1 i
  shift
  for ((i = 0; i < most * 10; ++i)); do "$@" && return; sleep 0.1; done
  all_out; report_failure "waited $most s for: $*" && exit 1
}
all_end_well() {
  local i status
  for i in {0..3}; do
    wait "${running[i]}"
    status=$?
    all_out
    [[ $status -eq 0 ]] || report_failure "$1: pod $i: status $status"
  done
}
accuracy() { sed -n 's/^{"kind":"end".*"state":"finished".*"test_accuracy":\([0-9.]*\).*/\1/p' "$directory/shared/$1/metrics/0.jsonl" | tail -n 1; }
sum() { python3 "$here/weights_sum.py" "$directory/shared/$1/mean-model.safetensors"; }

cat >"$directory/options/run.toml" <<'END'
model = "mlp"
samples = 5000
batch-size = 25
epochs = 20
seed = 7
staleness = 0
step-ms = 10
suspect-after = "1"
checkpoint-every = 20
END
# What a container is, as the programs in it see it.
cat >"$directory/options/look" <<'END'
echo "user $(id -u):$(id -g), groups $(id -G)"
echo "process $$ of $(hostname), $(ls -d /proc/[0-9]* | wc -l) with ls"
grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/self/status | tr -d '\t'
echo "$(df --output=size -B 1 /dev/shm | tail -n 1) bytes of /dev/shm"
for place in / /usr/bin /home/fast /etc /etc/fast /dev /run; do ! touch "$place/mark" 2>/dev/null || echo "writes to $place"; done
for place in /shared /tmp /dev/shm; do
  [[ ! -e $place/mark ]] || echo "another pod's file is in $place"
  touch "$place/mark" || echo "no writing to $place"
done
rm /shared/mark
getent hosts fast-0.fast >/dev/null || echo "no address of fast-0.fast"
[[ ! -e /usr/bin/g++ && ! -e $1 ]] || echo "files of the machine are there"
END
for i in 1 2; do # the second one has the first one's name and address, and nothing of it
  (container 1 2 -- bash /etc/fast/look "$directory") >"$directory/output" 2>&1 || report_failure "a container: status $?"
  for text in "user $user:$group, groups $group" "process 1 of fast-1" CapEff:0000000000000000 CapBnd:0000000000000000 NoNewPrivs:1 "1073741824 bytes of /dev/shm"; do
    grep -qF -- "$text" "$directory/output" || report_failure "a container: no \"$text\""
  done
  ! grep -qE "^(writes|no |another|files)" "$directory/output" || report_failure "a container is not closed"
done

for i in 3 1 2 0; do pod $i $((i + 1)) FAST_RUN=whole; done
all_end_well "an undisturbed run"
(container 0 1 -- fastrun -n 4 fast-train --config /etc/fast/run.toml --quiet --out /shared/alone) >"$directory/output" 2>&1 ||
  report_failure "a run in one container: status $?"
echo "image_pods: weights in four pods $(sum whole), in one container $(sum alone)"
[[ -n $(sum whole) && $(sum whole) == "$(sum alone)" ]] || report_failure "the weights differ"

rm -f "$directory"/out-*
for i in {0..3}; do pod $i $((i + 1)); done
wait_until 60 has_epoch
process=$(first_process 0)
expect "the health check" 0 "/shared/run: written" -- nsenter --target "$process" --mount --pid --ipc --uts --root --wd env -i \
  PATH=/usr/bin:/bin "${variables[@]}" fast-health
kill -KILL "$(first_process 2)"
! wait "${running[2]}" || report_failure "the pod that was killed ended well"
wait_until 30 said "rank 2 on fast-2 is out of reach"
pod 2 5 # a new pod has the old one's name and index, and another address
wait_until 60 said "attempt 1 has ended early"
all_end_well "a run with a pod that was killed"
said "resuming from round" || report_failure "nothing was resumed"
[[ -e $directory/shared/run/pods/attempt-2/taken-2 ]] || report_failure "the new pod took no part"
for i in {0..3}; do grep -q '"epoch":20' "$directory/shared/run/metrics/$i.jsonl" || report_failure "worker $i did not train to the end"; done
undisturbed=$(accuracy whole) killed=$(accuracy run)
echo "image_pods: accuracy undisturbed $undisturbed, with a pod killed $killed"
python3 -c "exit(not ($undisturbed > 0.75 and abs($undisturbed - $killed) < 0.02))" || report_failure "accuracy $killed, undisturbed $undisturbed"
[[ $(stat -c %u "$directory/shared/run/mean-model.safetensors") -eq $user ]] || report_failure "the model is not the user's"
find "$root" -newer "$directory/begin" ! -type d >"$directory/output"
[[ ! -s $directory/output ]] || report_failure "files of the image were changed"
echo "$failures failures"
[[ $failures -eq 0 ]]
