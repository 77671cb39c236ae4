# Sourced by tests of studies/*/run.sh: programs that stand for others, in $place. Ends with 77 where Matplotlib is missing.
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
/usr/bin/python3 -c 'import matplotlib' 2>/dev/null || { echo "skipped: apt-get install python3-matplotlib"; exit 77; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "$1:" && cat "${@:2}" && exit 1; }
# program PATH: one of bash, whose lines are read from standard input.
program() { mkdir -p "$(dirname "$place/$1")" && { echo '#!/usr/bin/env bash' && cat; } >"$place/$1" && chmod +x "$place/$1"; }
