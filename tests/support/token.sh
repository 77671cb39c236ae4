# Sourced by tests in bash after expect.sh: whether the token, by which fastrun knows its ranks, stays secret.
# Needs $directory. Programs to be put first in PATH are in $secret.
secret=$directory/secret
mkdir "$secret"
# mpiexec that keeps the token: fastrun gives it to the ranks by their environment.
cat >"$secret/mpiexec" <<END
#!/usr/bin/env bash
read -r _ _ token _ <<<"\$FASTRUN_AT"
printf '%s\n' "\$token" >"$directory/token"
exec "$(command -v mpiexec)" "\$@"
END
# ssh that stays, so that its arguments can be seen. Every host is this machine.
cat >"$secret/ssh" <<'END'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift; done
sh -c "${*:2}"
exit
END
# A rank that stays until the test has looked.
cat >"$secret/rank" <<END
#!/usr/bin/env bash
: >"$directory/began-\$FASTRUN_RANK"
for ((i = 0; i < 400; ++i)); do [[ ! -e "$directory/looked" ]] || exit 0; sleep 0.1; done
exit 1
END
chmod +x "$secret"/*

in_arguments() { grep -laFf "$directory/token" /proc/[0-9]*/cmdline 2>/dev/null; } # of any process
# look_for_token TITLE RANKS: once all ranks of $secret/rank run, no process has the token in its arguments. Then the ranks end.
look_for_token() {
  local found
  for ((i = 0; i < 300 && $(compgen -G "$directory/began-*" | wc -l) < $2; ++i)); do sleep 0.1; done
  if [[ $(compgen -G "$directory/began-*" | wc -l) -ne $2 ]]; then
    report_failure "$1: $2 ranks have not begun"
  elif ! grep -qxE '[0-9a-f]{24}' "$directory/token"; then # an empty one would be found nowhere, or everywhere
    report_failure "$1: no token"
  else
    found=$(in_arguments) && report_failure "$1: the token is in $found"
  fi
  : >"$directory/looked"
}
# no_token_in TITLE PATH...: neither in these files nor in those of these folders.
no_token_in() {
  local title=$1 found
  found=$(grep -rlaFf "$directory/token" "${@:2}") && report_failure "$title: the token is in $found"
}
# The next run has a token of its own.
forget_token() { rm -f "$directory"/began-* "$directory/looked" "$directory/token"; }
# The look finds a token that is in arguments.
token_is_found() {
  local process found=1
  (exec -a "$(<"$directory/token")" sleep 20) &
  process=$!
  for ((i = 0; i < 100; ++i)); do [[ $(in_arguments) == *"/proc/$process/cmdline"* ]] && found=0 && break || sleep 0.1; done
  kill $process
  wait $process 2>/dev/null
  return $found
}
