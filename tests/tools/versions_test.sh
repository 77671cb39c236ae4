#!/usr/bin/env bash
# Each program prints its version, and names the closest option for an unknown one.
#   versions_test.sh VERSION PROGRAM...
set -uo pipefail
version=$1 failures=0
shift
for program in "$@"; do
  name=$(basename "$program")
  printed=$(timeout 60 "$program" --version) || { echo "FAILED: $name --version: status $?" && failures=1; }
  [[ $printed == "$name $version" ]] || { echo "FAILED: $name --version: $printed" && failures=1; }
  message=$(timeout 60 "$program" --versoin 2>&1) && { echo "FAILED: $name --versoin succeeded" && failures=1; }
  [[ $message == *"did you mean \"--version\"?"* ]] || { echo "FAILED: $name --versoin: $message" && failures=1; }
  [[ $(wc -l <<<"$message") -eq 1 ]] || { echo "FAILED: $name --versoin: more than one line" && failures=1; }
done
exit "$failures"
