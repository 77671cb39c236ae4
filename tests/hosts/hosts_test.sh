#!/usr/bin/env bash
# hosts_test.sh HOSTS RANKS PROGRAM: runs PROGRAM with RANKS ranks on each of HOSTS hosts. 77: cannot be done here.
set -euo pipefail
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check) || { echo "skipped: $why"; exit 77; }
trap '"$hosts" down' EXIT
"$hosts" up "$1"
timeout -k 5 170 "$hosts" run "$1" -r "$2" "$3" </dev/null || { status=$?; echo "ended with status $status"; exit $status; }
