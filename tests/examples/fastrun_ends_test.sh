#!/usr/bin/env bash
# How fastrun ends: early signals, lost outputs, strangers, and no process that is left behind.   fastrun_ends_test.sh FASTRUN
set -uo pipefail
fastrun=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Lines that cannot be written end nobody.
cat >"$directory/dies" <<'END'
#!/usr/bin/env bash
[[ $FASTRUN_RANK != 0 ]] || { sleep 0.5 && kill -9 $$; }
sleep 1.5
touch "$1.$FASTRUN_RANK"
END
chmod +x "$directory/dies"
for way in full closed; do
  case $way in
    full) timeout 60 "$fastrun" -n 3 "$directory/dies" "$directory/$way" 2>/dev/full ;;
    closed) timeout 60 "$fastrun" -n 3 "$directory/dies" "$directory/$way" 2>&- ;;
  esac
  status=$?
  [[ $status -eq 0 && -e $directory/$way.1 && -e $directory/$way.2 ]] ||
    report_failure "standard error $way: status $status, $(ls "$directory" | grep -c "^$way") ranks went on"
done

# A signal before all ranks are there reaches those that come later.
for delay in 0.02 0.05 0.08 0.12 0.2 0.4; do
  [[ $delay == 0.*2 ]] && signal=USR1 || signal=TERM
  "$fastrun" -n 8 sleep 45 >"$directory/output" 2>&1 &
  launcher=$!
  sleep "$delay"
  kill -$signal "$launcher"
  began=$SECONDS
  wait "$launcher"
  status=$?
  [[ $status -ne 0 && $((SECONDS - began)) -lt 44 ]] ||
    report_failure "SIG$signal after $delay s: status $status after $((SECONDS - began)) s: $(cat "$directory/output")"
done

# What a signal to fastrun becomes for its ranks. Those of queue systems ask for a stop that saves. None ends fastrun.
cat >"$directory/hears" <<'END'
#!/usr/bin/env bash
for name in HUP INT TERM USR1 USR2 XCPU; do trap "echo rank \$FASTRUN_RANK hears $name; exit 0" $name; done
echo "rank $FASTRUN_RANK listens"
for ((i = 0; i < 600; ++i)); do sleep 0.1; done
exit 1
END
chmod +x "$directory/hears"
for pair in TERM:TERM INT:INT HUP:TERM USR2:USR2 USR1:USR2 XCPU:USR2; do
  : >"$directory/output"
  env --default-signal=INT "$fastrun" -n 3 "$directory/hears" >"$directory/output" 2>&1 &
  launcher=$!
  for ((i = 0; i < 300; ++i)); do
    [[ $(grep -c listens "$directory/output") -lt 3 ]] || break
    sleep 0.1
  done
  kill "-${pair%:*}" "$launcher"
  wait "$launcher"
  status=$?
  [[ $status -eq 0 && $(grep -c "hears ${pair#*:}$" "$directory/output") -eq 3 ]] ||
    report_failure "SIG$pair: status $status: $(cat "$directory/output")"
done

# An mpiexec that starts one of two ranks. The rank has the time to save, and what it has started ends with it.
cat >"$directory/half" <<'END'
#!/usr/bin/env bash
while [[ $2 != --wrap ]]; do shift; done
PMI_RANK=0 PMI_SIZE=2 "$@" &
exec sleep 50
END
cat >"$directory/saves" <<'END'
#!/usr/bin/env bash
trap 'sleep 1; touch "$1"; exit 1' TERM
touch "$1.ready"
sleep 47.25 &
wait
END
chmod +x "$directory/half" "$directory/saves"
nothing_left() { # TITLE ARGUMENTS of a process
  for ((i = 0; i < 200; ++i)); do
    pgrep -xf "$2" >/dev/null || return
    sleep 0.1
  done
  report_failure "$1: \"$2\" is left behind"
  pkill -xf "$2"
}
expect "a rank that is not started" 1 "1 of 2 ranks have not been started within 8 s" -- \
  "$fastrun" --mpiexec "$directory/half" --launch-deadline 8 -n 2 "$directory/saves" "$directory/saved"
[[ -e $directory/saved ]] || report_failure "a rank that is not started: the other one had no time to save"
"$fastrun" --mpiexec "$directory/half" -n 2 "$directory/saves" "$directory/saved-too" >"$directory/output" 2>&1 &
launcher=$!
for ((i = 0; i < 300; ++i)); do
  [[ ! -e $directory/saved-too.ready ]] || break
  sleep 0.1
done
kill -TERM "$launcher"
wait "$launcher"
[[ $? -eq 1 && -e $directory/saved-too ]] || report_failure "SIGTERM before all ranks are started: $(cat "$directory/output")"

# Ranks that are scripts: mpiexec dies before training began.
"$fastrun" -n 2 sh -c 'sleep 48.75; true' >"$directory/output" 2>&1 &
launcher=$!
for ((i = 0; i < 300; ++i)); do
  [[ $(pgrep -cxf "sleep 48.75") -lt 2 ]] || break
  sleep 0.1
done
pkill -9 -P "$launcher"
wait "$launcher"
nothing_left "mpiexec dies" "sleep 48.75"

# Output that nobody reads does not keep fastrun from ending.
mkfifo "$directory/unread"
exec 7<>"$directory/unread"
"$fastrun" -n 1 sh -c ': >"$0/begun" && yes | head -c 300000' "$directory" >"$directory/unread" 2>"$directory/output" &
launcher=$!
for ((i = 0; i < 200; ++i)); do
  [[ ! -e $directory/begun ]] || break
  sleep 0.1
done
sleep 5
for ((i = 0; i < 300; ++i)); do # two signals that come close together are one
  kill -TERM "$launcher" 2>/dev/null || break
  sleep 0.1
done
kill -9 "$launcher" 2>/dev/null && report_failure "output that nobody reads: fastrun does not end"
grep -qF "what is left of it is dropped" "$directory/output" || report_failure "output that nobody reads: $(cat "$directory/output")"
exec 7>&-

# Lines of ranks that print much stay whole. A line that has only begun is passed on after a moment.
"$fastrun" -n 3 sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); echo "rank $FASTRUN_RANK line $i of many"; done' |
  cat >"$directory/lines"
torn=$(grep -cvxE 'rank [0-2] line [0-9]+ of many' "$directory/lines")
[[ $torn -eq 0 && $(wc -l <"$directory/lines") -eq 60000 && $(sort -u "$directory/lines" | wc -l) -eq 60000 ]] ||
  report_failure "lines of three ranks: $torn of $(wc -l <"$directory/lines") are torn"
cat >"$directory/begins" <<'END'
#!/usr/bin/env bash
printf "begun %s" "$FASTRUN_RANK"
for ((i = 0; i < 400; ++i)); do [[ ! -e $1 ]] || break; sleep 0.1; done
echo " and ended"
END
chmod +x "$directory/begins"
"$fastrun" -n 2 "$directory/begins" "$directory/seen" >"$directory/lines" 2>"$directory/output" &
launcher=$!
for ((i = 0; i < 300; ++i)); do
  [[ $(grep -o "begun [01]" "$directory/lines" | wc -l) -lt 2 ]] || break
  sleep 0.1
done
kill -0 "$launcher" 2>/dev/null && [[ $i -lt 300 ]] || report_failure "a line that has begun: it comes at its end only"
touch "$directory/seen"
wait "$launcher" || report_failure "a line that has begun: status $?"

# A rank that ends well before training began, while the others may wait for it.
cat >"$directory/waits" <<'END'
#!/usr/bin/env bash
((FASTRUN_RANK != 1)) || exit 0
for ((i = 0; i < 400; ++i)); do ! grep -qF "before training began" "$1" || exit 0; sleep 0.1; done
END
chmod +x "$directory/waits"
expect "an early end" 0 "rank 1 ended with status 0 before training began; ranks 0, 2 may wait for it" -- \
  "$fastrun" -n 3 "$directory/waits" "$directory/output"
expect "no early end" 0 -- "$fastrun" -n 3 bash -c '[[ $FASTRUN_RANK != 0 ]] || printf b >&"$FASTRUN_FD"; ((FASTRUN_RANK == 1)) || sleep 12'
grep -qF "before training began" "$directory/output" && report_failure "no early end: training has begun"

# Connections that never say the token make room for ranks. fastrun alone has few files: Open MPI's mpiexec needs more.
cat >"$directory/crowd" <<'END'
#!/usr/bin/env bash
ulimit -Sn "$(ulimit -Hn)"
read -r addresses port rest <<<"$FASTRUN_AT"
for ((i = 30; i < 90; ++i)); do eval "exec $i<>/dev/tcp/${addresses##*,}/$port" 2>/dev/null; done
sleep 0.5
exec mpiexec "$@"
END
chmod +x "$directory/crowd"
expect "strangers who are silent" 0 "rank 1 is there" -- \
  bash -c 'ulimit -Sn 60 && exec "$@"' - "$fastrun" --mpiexec "$directory/crowd" -n 2 sh -c 'echo "rank $FASTRUN_RANK is there"'

echo "fastrun ends: $failures failures"
exit $((failures > 0))
