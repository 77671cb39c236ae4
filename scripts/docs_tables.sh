#!/usr/bin/env bash
# Writes the tables of options and rules into the documentation, as the programs print them.
# --check fails when a page differs and names it.   docs_tables.sh [--check] [FAST_TRAIN]
# The other programs are in the directory of fast-train.
set -euo pipefail
cd "$(dirname "$0")/.."
check=
[[ ${1:-} != --check ]] || { check=1 && shift; }
program=${1:-build/release/bin/fast-train}
tables=$(mktemp) page=$(mktemp) stale=0
trap 'rm -f "$tables" "$page"' EXIT
pages=(docs/reference/fast-train.md docs/reference/algorithms.md docs/reference/programs.md)
directory=$(dirname "$program")
for name in "$(basename "$program")" fastrun fast-topology fast-model fast-data fast-trace fast-report fast-sim fast-serve fast-sites; do
  [[ -x $directory/$name ]] || {
    echo "$directory/$name is missing; build all programs and name fast-train: for the preset dev," \
      "scripts/build.sh dev and scripts/docs_tables.sh build/dev/bin/fast-train" >&2
    exit 1
  }
  "$directory/$name" --help-markdown >>"$tables"
done

# Replaces each part between "<!-- NAME -->" and "<!-- end -->" by the table of that name.
replace='
  FNR == NR { if (/^<!-- end -->$/) name = ""; else if (/^<!-- .* -->$/) { name = $0; known[name] = 1 }
              else if (name != "") table[name] = table[name] $0 "\n"; next }
  $0 in known { print; printf "%s", table[$0]; inside = 1; next }
  /^<!-- end -->$/ { inside = 0 }
  !inside { print }'

for file in "${pages[@]}"; do
  awk "$replace" "$tables" "$file" >"$page"
  cmp -s "$page" "$file" && continue
  if [[ $check ]]; then
    echo "$file: its tables differ from the program's; run scripts/docs_tables.sh $program"
    diff "$file" "$page" | head -20 || true
    stale=1
  else
    cat "$page" >"$file"
    echo "$file written"
  fi
done

# Each table is in a page.
while read -r name; do
  grep -qxF -e "$name" "${pages[@]}" && continue
  echo "docs/reference: no page has the line \"$name\"; add it, with a line \"<!-- end -->\" below"
  stale=1
done < <(grep -x '<!-- .* -->' "$tables" | grep -v '<!-- end -->')
exit "$stale"
