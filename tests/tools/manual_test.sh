#!/usr/bin/env bash
# The manual page of each program: man formats it without a warning, and it has all options of the help.
#   manual_test.sh FOLDER PROGRAM...     FOLDER: has a page of each program. 77: cannot be done here
set -uo pipefail
folder=$1 failures=0
shift
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }
command -v groff >/dev/null || { echo "skipped: no groff here; apt-get install groff-base"; exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for program in "$@"; do
  name=$(basename "$program")
  groff -man -ww -Tascii -P-cbou -rLL=100n "$folder/$name.1" >"$directory/text" 2>"$directory/warnings" || fail "$name: groff: status $?"
  [[ ! -s $directory/warnings ]] || fail "$name: $(<"$directory/warnings")"
  for section in NAME SYNOPSIS DESCRIPTION OPTIONS; do grep -q "^$section\$" "$directory/text" || fail "$name: no section $section"; done
  grep -qE "^ +$name - [a-z].{10,}" "$directory/text" || fail "$name: the name is not described"
  for option in $("$program" --help | grep -oE '^ +-[^ ]*( *, *-[^ ]*)*' | tr -d ' ' | tr ',' ' '); do
    grep -qE "^ +(.*, )?$(printf '%s' "$option" | sed 's/[-]/[-]/g')(,| |\$)" "$directory/text" || fail "$name: no $option"
  done
done
"$1" --help-man | cmp -s - "$folder/$(basename "$1").1" || fail "the page is not what $1 prints"
echo "$failures failures"
[[ $failures -eq 0 ]]
