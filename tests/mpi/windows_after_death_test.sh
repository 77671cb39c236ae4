#!/usr/bin/env bash
# The memory of a window goes back to the system when one of its ranks has died, and Workers of the others work on.
#   windows_after_death_test.sh FASTRUN WINDOWS_AFTER_DEATH        WORKERS=3000: more of them
set -uo pipefail
output=$(mktemp)
trap 'rm -f "$output"' EXIT
timeout -k 5 ${SECONDS_AT_MOST:-100} "$1" -n 3 "$2" "${WORKERS:-300}" </dev/null >"$output" 2>&1
cat "$output"
[[ $(grep -c "rank [01]: ${WORKERS:-300} workers" "$output") -eq 2 ]] && grep -q "2 of 3 ranks ended well" "$output"
