#!/usr/bin/env bash
# hosts_test.sh HOSTS RANKS PROGRAM [RATE [ARGUMENT...]]: runs PROGRAM with RANKS ranks on each of HOSTS hosts, whose links
# have that rate; "": no limit. 77: cannot be done here.
set -euo pipefail
hosts=$(dirname "$(readlink -f "$0")")/hosts.sh
why=$("$hosts" check any) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
trap '"$hosts" down' EXIT
"$hosts" up "$1"
[[ -z ${4:-} ]] || why=$("$hosts" rate "$4" 2>&1) || { echo "skipped: a link's rate cannot be limited: $why"; exit 77; }
timeout -k 5 400 "$hosts" run "$1" -r "$2" "$3" "${@:5}" </dev/null 9>&- || { status=$?; echo "ended with status $status"; exit $status; }
