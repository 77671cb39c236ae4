#!/usr/bin/env bash
# The completion of each program, in bash: what it offers for options and their values.
#   completion_test.sh FOLDER PROGRAM...     FOLDER: has a script of each program's name
set -uo pipefail
folder=$1 failures=0
shift
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/a folder"
touch "$directory/a file.toml"
cd "$directory" || exit 1

# offered WORD...: what is offered for the last word, one a line.
offered() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  local function
  function=$(complete -p "$1" | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
  "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>"$directory/errors"
  [[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
}
# expect "WANTED..." WORD...: these words, in any order, and no others.
expect() {
  local wanted=$1 found
  shift
  found=$(offered "$@" | sort | paste -sd' ')
  [[ $found == "$wanted" ]] || fail "$*: offered \"$found\", not \"$wanted\""
  [[ ! -s errors ]] || fail "$*: $(<errors)"
}
# expect_some "WANTED..." WORD...: these words and others.
expect_some() {
  local wanted=$1 word found
  shift
  found=" $(offered "$@" | paste -sd' ') "
  for word in $wanted; do [[ $found == *" $word "* ]] || fail "$*: no $word in \"$found\""; done
}

for program in "$@"; do
  name=$(basename "$program")
  bash -n "$folder/$name" || fail "$name: no script of bash"
  # shellcheck disable=SC1090
  source "$folder/$name"
  # All options that the help has, and no others.
  from_help() { grep -oE '^ +-[^ ]*( *, *-[^ ]*)*' | tr -d ' ' | tr ',' '\n' | sort -u; }
  [[ $("$program" --help | from_help) == "$(offered "$name" - | sort -u)" ]] ||
    fail "$name: the help and the completion differ: $(diff <("$program" --help | from_help) <(offered "$name" - | sort -u))"
  for command in $("$program" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p'); do
    expect_some "$command" "$name" ""
    [[ $("$program" "$command" --help | from_help) == "$(offered "$name" "$command" - | sort -u)" ]] ||
      fail "$name $command: the help and the completion differ"
  done
done

expect "--ema --epochs --erase --evaluate-every --exchange" fast-train --e
expect "adam adamw" fast-train --optimizer a
expect "adam adamw sgd" fast-train --optimizer ""
expect "adam adamw sgd" fast-train --optimizer = # as bash splits --optimizer=
expect "adam adamw" fast-train --optimizer = a
expect "lenet lstm" fast-train --quiet --model l
expect "a file.toml a folder" fast-train --quiet --model a # a file of layers
expect "torus2d torus3d" fast-train --topology torus
expect "a folder" fast-train --out a
expect "a file.toml a folder" fast-train --config a
expect "" fast-train --epochs ""
expect "" fast-train --no-such-
expect "check compare list plan show" fast-topology ""
expect "list" fast-topology l
expect "torus2d torus3d" fast-topology show torus
expect "uniform_columns uniform_rows" fast-topology show ring --weights u
expect "a file.toml a folder" fast-topology check --algorithm awc a
expect "doubling" fast-sim --exchange d
expect "halving" fast-sim --exchange h
expect "a folder" fast-trace merge a
expect "a file.toml a folder" fast-model info a
expect "a file.toml a folder" fast-model predict a
expect "evaluate export" fast-model e
expect "a file.toml a folder" fast-train --init-weights a
expect "a file.toml a folder" fast-sites fetch --out a
expect "--spares --start-deadline" fastrun --s
expect "--spares" fastrun -n 4 --sp
expect "a file.toml a folder" fastrun -n 4 --control a
expect_some "bash" fastrun -n 4 bas
expect "a file.toml a folder" fastrun -n 4 cat a
expect "" fastrun -n 4 cat --sp # options of the program are its own
echo "$failures failures"
[[ $failures -eq 0 ]]
