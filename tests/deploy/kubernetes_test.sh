#!/usr/bin/env bash
# deploy/kubernetes: kustomize renders all folders, what it renders fits together, and fast-train reads the options.
#   kubernetes_test.sh FAST_TRAIN [--schemas]     --schemas: by those of Kubernetes too, with kubernetes-validate of PyPI
# 77: cannot be done here
set -uo pipefail
train=$1
here=$(dirname "$(readlink -f "$0")")
source=$here/../../deploy/kubernetes
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$here/../support/expect.sh"
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: no PyYAML; apt-get install python3-yaml"; exit 77; }

for file in "$source"/*/run.toml "$source"/*/*/run.toml; do
  expect "$file" 0 "topology = " "checkpoint-every = " -- "$train" --config "$file" --write-config -
done
# What the launcher of the MPIJob starts.
mkdir -p "$directory/bin" "$directory/shared"
printf '#!/bin/sh\necho "started: $*"\n' >"$directory/bin/fastrun" && chmod +x "$directory/bin/fastrun"
python3 -c 'import sys, yaml; job = yaml.safe_load(open(sys.argv[1]))
print(job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"][0])' "$source/mpijob/mpijob.yaml" |
  sed "s|/shared|$directory/shared|g" >"$directory/launcher"
launches() { # TITLE OPTIONS: beside the usual ones
  expect "$1" 0 "--checkpoints $directory/shared/run/checkpoints$2" -- env PATH="$directory/bin:$PATH" WORKERS=4 bash -c "$(<"$directory/launcher")"
  grep -qE -e "checkpoints$2 ?\$" "$directory/output" || report_failure "$1: other options"
}
launches "the first launcher" ""
mkdir -p "$directory/shared/run/checkpoints"
launches "a launcher before the first checkpoint" " --overwrite"
mkdir "$directory/shared/run/checkpoints/round-5"
launches "a launcher with a checkpoint that is not complete" ""
touch "$directory/shared/run/checkpoints/round-5/manifest.json"
launches "a launcher with a checkpoint" " --resume $directory/shared/run/checkpoints"
source "$here/kustomize.sh"
find_kustomize || { echo "skipped: neither kubectl nor kustomize here"; exit $((failures ? 1 : 77)); }
mkdir "$directory/rendered"
for folder in job mpijob overlays/eight-pods-spares overlays/gpus overlays/site; do
  if ! render "$source/$folder" >"$directory/rendered/$(basename "$folder").yaml" 2>"$directory/output"; then
    ! is_too_old "$directory/output" || { echo "skipped: this kustomize is too old: $(tail -n 1 "$directory/output")"; exit $((failures ? 1 : 77)); }
    report_failure "$folder is not rendered"
  fi
done
check=(python3 "$here/kubernetes_check.py")
expect "what is rendered" 0 "job.yaml: 6 objects" -- "${check[@]}" "$directory"/rendered/*.yaml
cat "$directory/output"
grep -q 'FAST_PODS: "8"' "$directory/rendered/eight-pods-spares.yaml" || report_failure "the overlay's number of pods is lost"
grep -q 'nvidia.com/gpu: 1' "$directory/rendered/gpus.yaml" || report_failure "the overlay's GPU is lost"
grep -q 'value: /etc/fast-site/site.nkey' "$directory/rendered/site.yaml" || report_failure "the overlay's login is lost"
# The check finds what is wrong.
sed 's/completions: 4/completions: 3/; s/clusterIP: None/clusterIP: 10.0.0.1/' "$directory/rendered/job.yaml" >"$directory/wrong.yaml"
expect "what is wrong" 1 "completions 3, parallelism 4, FAST_PODS 4 differ" "the Service is not headless" -- "${check[@]}" "$directory/wrong.yaml"
sed 's/- 75$/- 76/; s/action: FailJob/action: Count/' "$directory/rendered/job.yaml" >"$directory/wrong.yaml"
expect "statuses of pods" 1 "pods that wait for others count as failures" "wrong options are tried again" -- "${check[@]}" "$directory/wrong.yaml"
sed 's/defaultMode: 288/defaultMode: 420/' "$directory/rendered/site.yaml" >"$directory/wrong.yaml"
expect "a secret for everybody" 1 "the secret fast-site can be written, or everybody reads it" -- "${check[@]}" "$directory/wrong.yaml"
for folder in job mpijob; do
  sed '/readOnlyRootFilesystem/d; s|mountPath: /tmp|mountPath: /temporary|' "$directory/rendered/$folder.yaml" >"$directory/wrong.yaml"
  [[ $folder == job ]] && who=Job || who="MPIJob Launcher"
  expect "$folder: a file system that is written" 1 "$who: its file system can be written" "$who: /tmp cannot be written" -- "${check[@]}" "$directory/wrong.yaml"
done
for folder in job mpijob; do
  sed 's/- ALL$/- NET_RAW/; /runAsNonRoot/d; /RuntimeDefault/s/Default//; /HYDRA_LAUNCHER_EXEC/s/_EXEC//' "$directory/rendered/$folder.yaml" >"$directory/wrong.yaml"
  [[ $folder == job ]] && who=Job || who="MPIJob Worker"
  expect "$folder: rights" 1 "$who: it runs as root" "$who: it keeps capabilities" "$who: no seccomp profile" -- "${check[@]}" "$directory/wrong.yaml"
done
grep -qF "the launcher's ssh does not know the port" "$directory/output" || report_failure "mpijob: ssh"
if [[ ${2:-} == --schemas ]]; then
  python3 -m venv "$directory/venv" && timeout 200 "$directory/venv/bin/pip" --disable-pip-version-check -q install --retries 1 --timeout 10 kubernetes-validate pyyaml \
    >"$directory/output" 2>&1 || { echo "schemas: skipped: PyPI is not reachable or lacks a package: $(tail -n 1 "$directory/output")"; echo "$failures failures"; exit $((failures > 0)); }
  check=("$directory/venv/bin/python" "$here/kubernetes_check.py")
  expect "schemas" 0 "job.yaml: 6 objects" -- "${check[@]}" --schema "${KUBERNETES:-1.31}" "$directory"/rendered/*.yaml
  sed 's/backoffLimit/backofLimit/' "$directory/rendered/job.yaml" >"$directory/wrong.yaml"
  expect "a wrong Job" 1 "backofLimit" -- "${check[@]}" --schema "${KUBERNETES:-1.31}" "$directory/wrong.yaml"
fi
echo "$failures failures"
[[ $failures -eq 0 ]]
