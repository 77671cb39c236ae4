#!/usr/bin/env bash
# The help of each program and subcommand: groups with an example each, of options that are there, in 100 columns. A
# misspelled subcommand, option or name gives one line with the closest one.
#   help_test.sh PROGRAM...
set -uo pipefail
failures=0
declare -A path
for program in "$@"; do path[$(basename "$program")]=$program; done
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }

# check_example HELP WORD...: the long options of an example that belong to the help.
check_example() {
  local help=$1 word name
  shift
  name=$1 && [[ $name != fastrun && $name != mpiexec || $* != *" fast-topology "* ]] || return 0
  shift
  for word; do
    [[ $name == fastrun && $word == fast-train ]] && break # options of the program are its own
    [[ $word != --* ]] || grep -qE "^  (.*, )?$word(,| |\$)" <<<"$help" || fail "$name: an example has $word"
  done
}

check_help() {
  local help title=
  help=$("${path[$1]}" "${@:2}" --help) || fail "$*: status $?"
  grep -q "^Usage: " <<<"$help" || fail "$*: no usage"
  grep -qE "^Example: |^  Example: " <<<"$help" || fail "$*: no example"
  grep -nE '^.{101}' <<<"$help" && fail "$*: a line of more than 100 columns"
  while IFS= read -r line; do
    [[ $line =~ ^[A-Z].*:$ && ! $line =~ ^(Arguments|Subcommands|Topologies):$ ]] && title=$line
    [[ $line == *"Example: "* ]] || continue
    title=
    # shellcheck disable=SC2086
    set -f && check_example "$help" ${line#*Example: } && set +f
  done < <(sed '/^Program:$/,$d' <<<"$help")
  [[ -z $title ]] || fail "$*: the group $title has no example"
  for command in $(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$help"); do check_help "$1" "$command"; done
}
for name in "${!path[@]}"; do check_help "$name"; done

# closest WANTED WORD...: the error is one line and has the name that was probably meant.
closest() {
  local wanted=$1 message
  shift
  message=$("${path[$1]}" "${@:2}" 2>&1)
  local status=$?
  [[ $status -eq 2 ]] || fail "$*: status $status"
  [[ $(wc -l <<<"$message") -eq 1 && $message == *"did you mean \"$wanted\"?"* ]] || fail "$*: $message"
}
closest show fast-topology shwo ring
closest compare fast-topology comprae -n 3
closest --weights fast-topology show ring --wieghts x
closest ring fast-topology show rnig
closest metropolis fast-topology show ring --weights metropolsi
closest awc fast-topology check --algorithm acw "$(dirname "$0")/../../topology/torus2d.toml"
closest --bandwidth fast-sim --bandwith 3
closest ring fast-sim --exchange rign
closest simgrid fast-sim --model simgird
closest awc fast-sim --algorithm acw
closest convert fast-data convret a b
closest train fast-data publish a nats://127.0.0.1:1/s --part trian
closest classes fast-data info a --target-type clases
closest export fast-model exprot
closest --resize fast-model predict run --data digits --resiez model
closest summary fast-trace sumary x
closest --html fast-report --htlm x
closest --doctor fastrun --doctr
closest --port fast-serve --prot 3
closest fetch fast-sites fecth
closest --json fast-sites status nats://127.0.0.1:1/run --jsno
closest --epochs fast-train --epochss 3
closest int8 fast-train --codec int88
closest lenet fast-train --exchange local --model lenett
echo "$failures failures"
[[ $failures -eq 0 ]]
