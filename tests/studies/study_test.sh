#!/usr/bin/env bash
# study_test.sh STUDY BIN ROW...: the study's reduced form runs to its end, its table has the rows, and all pictures that its
# page names are there. A second run repeats nothing. 77: cannot be done here.
set -euo pipefail
study=$1 bin=$2
shift 2
root=$(dirname "$(readlink -f "$0")")/../..
/usr/bin/python3 -c 'import matplotlib, numpy' 2>/dev/null || { echo "skipped: apt-get install python3-matplotlib python3-numpy"; exit 77; }
[[ -d /usr/share/datasets/fashion-mnist ]] || { echo "skipped: apt-get install dataset-fashion-mnist"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOSTS_WAIT=120
timeout -k 5 240 "$root/studies/$study/run.sh" --small "$bin" "$place" >"$place/out" || { status=$?; cat "$place/out"; exit $status; }
for row in "$@"; do
  grep -qE "^\| .*$row.* \| .*[0-9]" "$place/table.md" || { echo "the table has no row \"$row\":" && cat "$place/table.md" && exit 1; }
done
for picture in $(grep -oE '[a-z]+\.svg' "$root/studies/$study/README.md" | sort -u); do
  [[ $picture != rounds.svg || -x $bin/bench_scaling ]] || continue
  [[ -s $place/$picture ]] || { echo "there is no $picture" && exit 1; }
done
results() { find "$place" \( -name '*.json' -o -name '*.safetensors' \) -printf '%p %T@\n' | sort; }
results >"$place/first"
timeout -k 5 120 "$root/studies/$study/run.sh" --small "$bin" "$place" >"$place/out"
results | cmp "$place/first" - || { echo "runs were repeated" && exit 1; }
