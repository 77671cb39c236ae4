#!/usr/bin/env bash
# scripts/open_mpi.sh with a machine that only pretends.   open_mpi_script_test.sh SOURCES
set -uo pipefail
sources=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

mkdir -p "$directory"/{bin,tree/scripts}
cp "$sources"/scripts/{open_mpi.sh,packages.txt,packages-test.txt} "$directory/tree/scripts"
printf '#!/bin/sh\necho 0\n' >"$directory/bin/id"
printf '#!/bin/sh\n' >"$directory/bin/apt-get"
# run: installs nothing; else ends with the status that is asked for.
cat >"$directory/tree/scripts/bare_machine.sh" <<'END'
#!/bin/sh
echo "$@" >>"$log"
case "$*" in
*is-installed*) exit 0 ;;
run*) exit "$status" ;;
esac
mkdir -p "$2/root"
END
chmod +x "$directory"/bin/* "$directory/tree/scripts/bare_machine.sh"
export log=$directory/log status=0 PATH=$directory/bin:$PATH
open_mpi=("$directory/tree/scripts/open_mpi.sh" --folder "$directory/machine")

# After the shell the script ends, however the shell has ended.
for status in 0 3; do
  : >"$log"
  expect "a shell that ends with $status" "$status" -- "${open_mpi[@]}" --shell
  [[ $(grep -c "^run .* bash$" "$log") -eq 1 && $(grep -c ^run "$log") -eq 2 && $(tail -n 1 "$log") == *" bash" ]] || report_failure "a shell that ends with $status: $(cat "$log")"
done
expect "no such option" 2 "open_mpi.sh [--folder DIR]" -- "${open_mpi[@]}" --nonsense
[[ $failures -eq 0 ]]
