#!/usr/bin/env bash
# The small files of deploy/container: fast-health, fast-pods with bad settings, and what the Containerfile copies is there.
set -uo pipefail
files=$(readlink -f "$(dirname "$0")/../../deploy/container")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
unset FAST_SHARED FAST_RUN FAST_RUN_FOLDER FAST_PODS FAST_INDEX FAST_HOST JOB_COMPLETION_INDEX

mkdir -p "$directory/shared/run/metrics"
touch "$directory/shared/run/metrics/0.jsonl"
expect "a run that writes" 0 "written" -- "$files/fast-health" "$directory/shared/run"
expect "the same by the settings of fast-pods" 0 "$directory/shared/run: written" -- env FAST_SHARED="$directory/shared" "$files/fast-health"
touch -d "1 hour ago" "$directory/shared/run/metrics/0.jsonl"
expect "a run that stands still" 1 "at most 600 are allowed" -- "$files/fast-health" "$directory/shared/run"
expect "a run that may stand still" 0 "written" -- env FAST_HEALTH_S=7200 "$files/fast-health" "$directory/shared/run"
expect "a run before its first file" 0 "no run to look at" -- "$files/fast-health" "$directory/none"

mkdir "$directory/empty"
good=(FAST_INDEX=0 FAST_PODS=2 FAST_HOST=fast-@.fast FAST_SHARED="$directory/empty")
refused() { # TITLE TEXT SETTING...: one line, status 2
  local title=$1 text=$2
  shift 2
  expect "$title" 2 "$text" -- env "${good[@]}" "$@" "$files/fast-pods" fast-train
  [[ $(wc -l <"$directory/output") -eq 1 ]] || tell_failure "$title: more than one line"
}
refused "an index that is no number" 'FAST_INDEX: "one"' FAST_INDEX=one
refused "an index that is too large" "more than 2, is required" FAST_INDEX=2
refused "no number of pods" 'FAST_PODS: ""' FAST_PODS=
refused "no names" "FAST_HOST: a name of pod 0 is required" FAST_HOST=
refused "only spares" "at least one must train" FAST_SPARES=2
refused "an unknown way to return" "choose resume or wait" FAST_RETURN=never
refused "a folder that is not there" "cannot be written; mount a volume" FAST_SHARED="$directory/none"
expect "no program" 2 "no program is given" -- env "${good[@]}" "$files/fast-pods"
[[ -z $(ls "$directory/empty") ]] || tell_failure "a refused job leaves files"

for file in $(sed -n 's|.* \(deploy/[a-z/_.-]*\) .*|\1|p' "$files/Containerfile"); do
  [[ -e $files/../../$file ]] || { echo "$file" >"$directory/output" && tell_failure "the Containerfile copies what is not there"; }
done
# Patterns of git match at any depth, those of Docker only where ** says so.
{ printf '%s\n' .git venv && sed 's|^/||; s|/$||; s|^\*|**/*|' "$files/../../.gitignore"; } |
  grep -vxFf "$files/Containerfile.dockerignore" >"$directory/output" 2>&1
[[ $? -eq 1 ]] || tell_failure "docker build takes what git ignores"
[[ $(grep -cE '^[a-z0-9.+-]+=[^ ]+$' "$files/packages.lock") -gt 50 ]] || tell_failure "packages.lock is empty"
! grep -vE '^(#.*|[a-z0-9.+-]+=[^ =]+)$' "$files/packages.lock" >"$directory/output" || tell_failure "packages.lock has other lines"
echo "$failures failures"
[[ $failures -eq 0 ]]
