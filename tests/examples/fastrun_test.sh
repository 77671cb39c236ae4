#!/usr/bin/env bash
# fastrun keeps the living going, tells of the dead and ends by its criterion.   fastrun_test.sh FASTRUN FAST_TRAIN
set -uo pipefail
fastrun=$1 train=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

small=(--samples 600 --model mlp --epochs 1 --quiet)
expect "all end well" 0 "rank 0" "rank 2" -- "$fastrun" -n 3 bash -c 'echo "rank $FASTRUN_RANK"'
expect "one is killed" 0 "rank 1 (process" "signal 9" "rank 1 said: last words" "rank 2 survived" "2 of 3" -- \
  "$fastrun" -n 3 bash -c 'if [[ $FASTRUN_RANK = 1 ]]; then echo "last words" >&2; kill -9 $$; fi; sleep 1; echo "rank $FASTRUN_RANK survived"'
expect "too few end well" 1 "1 of 3 ranks ended well; 2 are required" -- "$fastrun" --min-workers 2 -n 3 bash -c 'exit $FASTRUN_RANK'
expect "the program's options are wrong" 2 "error: what?" -- "$fastrun" -n 2 bash -c 'echo "error: what?" >&2; exit 2'
expect "only a spare that slept ends well" 1 "1 of 2 ranks ended well (1 of these had no part in the end); 1 is required" -- \
  "$fastrun" -n 1 --spares 1 bash -c '[[ $FASTRUN_RANK = 1 ]]'
expect "a spare that took a seat ends well" 0 "1 of 2 ranks ended well; 1 is required" -- \
  "$fastrun" -n 1 --spares 1 bash -c 'if [[ $FASTRUN_RANK = 1 ]]; then printf t >&$FASTRUN_FD; else false; fi'
expect "none ends well" 1 "ended with status 1 and printed no error" "0 of 2" -- "$fastrun" -n 2 false
[[ $(grep -c "printed no error" "$directory/output") = 1 ]] || report_failure "none ends well: not told once"
expect "one fails in silence, and MPI ends the other" 1 "rank 1 (process" "ended with status 3 and printed no error" -- \
  "$fastrun" -n 2 bash -c '((FASTRUN_RANK)) && exit 3; sleep 0.5; echo "Abort(1) on node 0" >&2; exit 1'
expect "one of two has printed why" 1 "no data" "0 of 2" -- "$fastrun" -n 2 bash -c '((FASTRUN_RANK)) || echo "error: no data" >&2; exit 3'
grep -qF "printed no error" "$directory/output" && report_failure "one of two has printed why: a second line"
expect "no such program" 1 "/no/such cannot be started (No such file or directory)" -- "$fastrun" -n 2 /no/such
[[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "no such program: more than one line"
expect "no such program among those of PATH" 1 "fastrun: nosuchprogram cannot be started" -- "$fastrun" -n 2 nosuchprogram
[[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "no such program among those of PATH: more than one line"
expect "a program that other hosts may have" 1 "fastrun: /no/such cannot be started on $(hostname) (No such file or directory)" -- \
  "$fastrun" --hosts localhost -n 3 /no/such
[[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "a program that other hosts may have: more than one line"
expect "a folder in place of a program" 1 "$directory cannot be started on $(hostname) (Permission denied)" -- "$fastrun" --hosts localhost -n 2 "$directory"
expect "a program that ends with 127 by itself" 1 "ended with status 127 and printed no error" "0 of 2" -- "$fastrun" --hosts localhost -n 2 bash -c 'exit 127'
mkdir "$directory/programs"
printf '#!/bin/sh\necho "it is found"\n' >"$directory/programs/hidden"
printf '#!/bin/sh\nexport PATH="%s:$PATH"\nexec mpiexec "$@"\n' "$directory/programs" >"$directory/with_path"
chmod +x "$directory/programs/hidden" "$directory/with_path"
expect "a program that a script of --mpiexec finds" 0 "it is found" -- "$fastrun" --mpiexec "$directory/with_path" -n 2 hidden
expect "no program" 2 "no program given" -- "$fastrun" -n 2
expect "started by another" 1 "PMI_RANK" -- env PMI_RANK=0 "$fastrun" -n 2 true
expect "a heterogeneous job" 1 "this Slurm job has 2 components" -- env SLURM_HET_SIZE=2 "$fastrun" -n 2 true
expect "started by srun --mpi=pmix" 1 "PMIX_RANK" -- env PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1 "$fastrun" -n 2 true
expect "no mpiexec" 1 "cannot be started" "or name it by --mpiexec" -- "$fastrun" --mpiexec /no/mpiexec -n 2 true
printf '#!/bin/sh\nexec sleep 50\n' >"$directory/sleeper"
chmod +x "$directory/sleeper"
expect "an mpiexec that starts nobody" 1 "2 of 2 ranks have not been started within 1 s" "ranks 0, 1 never started; try fastrun --doctor" -- \
  "$fastrun" --mpiexec "$directory/sleeper" --launch-deadline 1 -n 2 true
expect "the same, interrupted" 1 "0 of 2 ranks ended well" -- \
  timeout --preserve-status -s INT 3 "$fastrun" --mpiexec "$directory/sleeper" -n 2 true
# hydra waits on for a host that ssh does not reach. Open MPI ends by itself.
mkdir "$directory/unreachable"
printf '#!/bin/sh\necho "ssh: no route to $2" >&2\nexit 255\n' >"$directory/unreachable/ssh"
chmod +x "$directory/unreachable/ssh"
not_reached=("ssh: no route to nohost2" "ssh to nohost2 ended with status 255; 1 of 2 ranks are not started" "rank 1 never started")
mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI" && not_reached=("never started")
expect "a host that ssh does not reach" 1 "${not_reached[@]}" -- \
  env PATH="$directory/unreachable:$PATH" "$fastrun" --hosts localhost,nohost2 --start-deadline 3 -n 2 sleep 50
grep -qF "within" "$directory/output" && report_failure "a host that ssh does not reach: fastrun waits for --launch-deadline"
# What connects is a rank by fastrun's token alone.
cat >"$directory/stranger" <<'EOF'
#!/usr/bin/env bash
read -r addresses port token rest <<<"$FASTRUN_AT"
exec 3<>"/dev/tcp/${addresses##*,}/$port"
printf '%s\n' "token ${guess:-$token}" "hello 0 $$ nowhere" "ended 0 0" >&3
read -r <&3
EOF
chmod +x "$directory/stranger"
expect "a stranger who knows the token" 0 -- "$fastrun" --mpiexec "$directory/stranger" -n 1 true
expect "a stranger who does not" 1 "rank 0 never started" -- env guess=0123456789abcdef "$fastrun" --mpiexec "$directory/stranger" -n 1 true
# Other users of a host see the arguments of all processes, and logs are passed on: the token is in neither.
source "$(dirname "$0")/../support/token.sh"
keeps_secret() { # TITLE OPTIONS...
  forget_token
  PATH="$secret:$PATH" timeout -k 5 100 "$fastrun" "${@:2}" -n 2 "$secret/rank" </dev/null >"$directory/output" 2>&1 &
  look_for_token "$1" 2
  wait $! || report_failure "$1: status $?"
  no_token_in "$1" "$directory/output"
}
keeps_secret "the token of a run on one host"
two_hosts=nohost1,nohost2
[[ $(mpiexec --version 2>/dev/null) == *HYDRA* ]] || two_hosts=localhost:2 # Open MPI: it connects to hosts by their names
if getent hosts "$(hostname)" >/dev/null; then
  keeps_secret "the token of a run over ssh" --hosts "$two_hosts"
else
  echo "left out: the token of a run over ssh: other hosts cannot find this one by its name, $(hostname)"
fi
token_is_found || report_failure "a token in arguments is not found"
expect "a run with all logs" 0 "test accuracy" -- \
  env PATH="$secret:$PATH" "$fastrun" -n 2 "$train" "${small[@]}" --out "$directory/logs" --log-level debug
no_token_in "the token of a run with all logs" "$directory/output" "$directory/logs"
# Of 24 descriptors, fastrun needs more for 12 ranks. This mpiexec and its ranks do with fewer each.
cat >"$directory/each_alone" <<'EOF'
#!/usr/bin/env bash
while [[ $2 != --wrap ]]; do shift; done
for rank in {0..11}; do PMI_RANK=$rank PMI_SIZE=12 "$@" 2>/dev/null & done
wait
EOF
chmod +x "$directory/each_alone"
few=("$fastrun" --mpiexec "$directory/each_alone" -n 12 bash -c 'echo "rank $FASTRUN_RANK has $(ulimit -Sn)"')
expect "few descriptors" 0 "rank 0 has 24" "rank 11 has 24" -- bash -c 'ulimit -Sn 24 && exec "$@"' - "${few[@]}"
expect "few descriptors, and no more are allowed" 1 "(Too many open files): 24 descriptors are allowed, and 12 ranks need two each" -- \
  bash -c 'ulimit -n 24 && exec "$@"' - "${few[@]}"
[[ $(grep -c ^fastrun: "$directory/output") -eq 1 ]] || report_failure "few descriptors: more than one error"
# bash becomes fastrun and is the process of $$.
hang_up='exec "$0" -n 1 sh -c "kill -HUP $$; sleep 1; echo survived"'
expect "a terminal closes" 1 "signal 15" -- env --default-signal=HUP bash -c "$hang_up" "$fastrun"
expect "a terminal closes, with nohup" 0 "survived" -- env --ignore-signal=HUP bash -c "$hang_up" "$fastrun"
expect "doctor" 0 "ok    mpiexec is " "ok    two processes" "/dev/shm" "cores" -- "$fastrun" --doctor -n 1
# One of these is the mpiexec of another MPI.
printf '#!/bin/sh\necho "HYDRA build details:"\n' >"$directory/hydra"
printf '#!/bin/sh\necho "mpiexec (OpenRTE) 4.1.4"\n' >"$directory/open_mpi"
chmod +x "$directory/hydra" "$directory/open_mpi"
other=hydra own="Open MPI" wrong=MPICH
grep -qF hydra "$directory/output" && other=open_mpi own=MPICH wrong="Open MPI"
expect "doctor of a host that is not there" 1 "FIX   host nobody.invalid answers to ssh: set up ssh" -- "$fastrun" --doctor -n 1 --hosts nobody.invalid
grep -q '^$' "$directory/output" && report_failure "doctor of a host that is not there: an empty line"
mkdir "$directory/silent" # its ssh takes all the time that it is given
printf '#!/bin/sh\n[ "$2" != ssh ] || exit 124\nexec %s "$@"\n' "$(command -v timeout)" >"$directory/silent/timeout"
chmod +x "$directory/silent/timeout"
expect "doctor of a host that is silent" 1 "FIX   host nohost1 answers to ssh: no answer within 30 s; see whether it is up" -- \
  env PATH="$directory/silent:$PATH" "$fastrun" --doctor -n 1 --hosts nohost1
expect "doctor of another MPI" 1 "FIX   $directory/$other is " "it is $wrong's, but FAST is built with $own: each rank would be rank 0 of 1" \
  "--mpiexec mpiexec." -- "$fastrun" --doctor --mpiexec "$directory/$other" -n 1
expect "doctor of no MPI" 1 "FIX   cat is " "install $own" -- "$fastrun" --doctor --mpiexec cat -n 1
# The hosts of --hosts are examined, not this machine. This ssh answers as a host of 64 cores, and for one of the two alone.
printf '#!/bin/sh\ncase $* in *nohost1*) exec env PATH="%s:$PATH" sh -c "$6" ;; esac\nexit 255\n' "$directory/bin" >"$directory/ssh"
mkdir "$directory/bin"
printf '#!/bin/sh\necho 64\n' >"$directory/bin/nproc"
chmod +x "$directory/ssh" "$directory/bin/nproc"
expect "doctor of other hosts" 1 "ok    host nohost1 answers to ssh" "64 cores for 2 ranks on nohost1" "FIX   host nohost2 answers" -- \
  env PATH="$directory:$PATH" "$fastrun" --doctor --hosts nohost1,nohost2:2 -n 4
grep -qF "ranks here" "$directory/output" && report_failure "doctor of other hosts: this machine is examined"
if getent hosts localhost >/dev/null; then
  expect "doctor of this host by name" 0 "cores for 1 ranks here" -- "$fastrun" --doctor --hosts localhost -n 1
else
  echo "left out: doctor of this host by name: the name localhost has no address"
fi
expect "doctor of more ranks than cores" 0 "note  " "cores for $(($(nproc) + 1)) ranks here: ranks share cores" -- \
  "$fastrun" --doctor -n "$(($(nproc) + 1))"
grep -qF "FIX" "$directory/output" && report_failure "doctor of more ranks than cores: runs work"
expect "training" 0 "test accuracy" "workers                       3" -- "$fastrun" -n 3 "$train" "${small[@]}"
expect "bad input" 2 "error: --lr: -1" -- "$fastrun" -n 2 "$train" "${small[@]}" --lr -1
[[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "bad input: more than one line"
expect "a rank that never begins" 1 "before training began" -- "$fastrun" --start-deadline 1 -n 2 \
  bash -c 'if [[ $FASTRUN_RANK = 1 ]]; then kill -9 $$; fi; exec sleep 50'

# SIGTERM to fastrun: all save and end; then they go on.
terminate() { kill -TERM "$(pgrep -P "$1")"; }
run=("$train" --samples 4000 --model mlp --epochs 40 --step-ms 10 --quiet --out "$directory/run" --checkpoints "$directory/saved")
expect_on_the_way "pre-emption" "stopped after" "$directory/run/metrics/0.jsonl" terminate -- "$fastrun" -n 2 "${run[@]}"
announce() { kill -USR1 "$(pgrep -P "$1")"; } # as Slurm before the end of the time
run=("$train" --samples 4000 --model mlp --epochs 40 --step-ms 10 --quiet --out "$directory/run2" --checkpoints "$directory/saved2")
expect_on_the_way "the end of a job's time" "stopped after" "$directory/run2/metrics/0.jsonl" announce -- "$fastrun" -n 3 "${run[@]}"
ls "$directory"/saved2/round-*/manifest.json >/dev/null || report_failure "the end of a job's time: nothing is saved"
expect "resume" 0 "test accuracy" "workers                       3" -- "$fastrun" -n 3 "$train" --samples 4000 --model mlp --epochs 5 --quiet --resume "$directory/saved"

# A stream of bytes passes unchanged, however late it is read.
cat >"$directory/late" <<'EOF'
#!/usr/bin/env bash
"$@" 2>/dev/null | (sleep 1; md5sum)
EOF
chmod +x "$directory/late"
expect "output" 0 "$(yes | head -c 3000000 | md5sum)" -- \
  "$directory/late" "$fastrun" -n 1 bash -c 'yes | head -c 3000000; echo other >&2'

# All of it, also if the rank has ended before fastrun has seen its connections.
printf '#!/bin/sh\nkill -STOP $PPID\n(sleep 1; kill -CONT $PPID) &\nexec mpiexec "$@"\n' >"$directory/slow_start"
chmod +x "$directory/slow_start"
expect "output of a rank that has ended" 0 "$(yes | head -c 3000000 | md5sum)" -- \
  "$directory/late" "$fastrun" --mpiexec "$directory/slow_start" -n 1 bash -c 'yes | head -c 3000000'

# The process manager gives up: ranks that train go on without it.
kill_mpiexec() { pkill -9 -P "$(pgrep -P "$1")" mpiexec; }
if mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI"; then # whose library ends a rank that has lost mpiexec
  timeout -k 5 100 "$fastrun" -n 2 "$train" --samples 4000 --model mlp --epochs 100 --step-ms 10 --quiet --out "$directory/alone" \
    </dev/null >"$directory/output" 2>&1 &
  for ((i = 0; i < 300 && $(results "$directory/alone/metrics/0.jsonl")0 < 1; ++i)); do sleep 0.1; done
  kill_mpiexec $!
  wait $! && report_failure "mpiexec is killed: status 0"
  grep -qF "0 of 2 ranks ended well" "$directory/output" || report_failure "mpiexec is killed: no end is told"
else
  expect_on_the_way "mpiexec is killed" "mpiexec has ended; the ranks go on without it" "$directory/alone/metrics/0.jsonl" kill_mpiexec -- \
    "$fastrun" -n 2 "$train" --samples 4000 --model mlp --epochs 10 --step-ms 10 --quiet --out "$directory/alone"
  grep -qF "workers                       2" "$directory/output" || report_failure "mpiexec is killed: no summary of both"
fi
cat >"$directory/sleepy" <<'EOF'
#!/bin/sh
echo $$ >"$directory/sleepy$FASTRUN_RANK"
exec sleep 50
EOF
chmod +x "$directory/sleepy"
export directory
sleepers_end() { # within 30 s
  for ((i = 0; i < 300; ++i)); do kill -0 $(cat "$directory"/sleepy?) 2>/dev/null || return 0; sleep 0.1; done
  return 1
}
start_sleepers() {
  rm -f "$directory"/sleepy?
  "$fastrun" -n 2 "$directory/sleepy" </dev/null >"$directory/output" 2>&1 &
  for ((i = 0; i < 300; ++i)); do [[ -s $directory/sleepy0 && -s $directory/sleepy1 ]] && break || sleep 0.1; done
}
start_sleepers
pkill -9 -P $! mpiexec
wait $! && report_failure "mpiexec is killed before training: status 0"
grep -qF "ranks 0, 1 ended with mpiexec, before training began" "$directory/output" || report_failure "mpiexec is killed before training"
sleepers_end || report_failure "mpiexec is killed before training: ranks live"

# When fastrun is killed, no rank stays.
start_sleepers
kill -9 $!
sleepers_end || report_failure "fastrun is killed: its ranks live"

# A host on which no rank starts. This mpiexec starts the first rank alone, and goes on.
cat >"$directory/first_alone" <<'EOF'
#!/usr/bin/env bash
while [[ $2 != --wrap ]]; do shift; done
PMI_RANK=0 PMI_SIZE=2 env --default-signal=INT "$@" &
exec sleep 50
EOF
chmod +x "$directory/first_alone"
cat >"$directory/patient" <<'EOF'
#!/usr/bin/env bash
trap 'echo >"$directory/patient_has_heard"' INT
echo >"$directory/patient_is_up"
for ((i = 0; i < 500; ++i)); do sleep 0.1; done
EOF
chmod +x "$directory/patient"
timeout -k 1 100 "$fastrun" --mpiexec "$directory/first_alone" -n 2 "$directory/patient" </dev/null >"$directory/output" 2>&1 &
patient() { # EVENT: waits for it
  for ((i = 0; i < 300; ++i)); do [[ -e $directory/patient_$1 ]] && break || sleep 0.1; done
}
patient is_up
launcher=$(pgrep -P $!)
kill -INT "$launcher" && patient has_heard && kill -INT "$launcher" # two that come close together are one
wait $!
[[ $? -eq 1 ]] || report_failure "interrupted twice while a rank does not start: no end with status 1"
grep -qF "rank 1 never started" "$directory/output" || report_failure "interrupted twice: no word of rank 1"
grep -qF "rank 0" "$directory/output" && report_failure "interrupted twice: the killed rank is told"
expect "a rank fails while another does not start" 1 "a rank ended before training began" "rank 1 never started" -- \
  "$fastrun" --mpiexec "$directory/first_alone" --start-deadline 1 -n 2 false
grep -qF "rank 0 ended with" "$directory/output" && report_failure "a rank fails while another does not start: its end is not known"

# Runs whose ranks of $victims tell their processes, to be killed.
cat >"$directory/rank" <<'EOF'
#!/usr/bin/env bash
[[ " $victims " != *" $FASTRUN_RANK "* ]] || echo $$ >"$directory/victim$FASTRUN_RANK"
exec "$@"
EOF
chmod +x "$directory/rank"
kill_victims() { kill -9 $(cat "$directory"/victim*) && rm "$directory"/victim*; }
small=(--samples 600 --model mlp --batch-size 10 --step-ms 50 --suspect-after 5 --quiet)
export directory victims

# The larger of the parts into which two deaths cut a ring of five gives the result.
victims="1 4"
run=("$directory/rank" "$train" "${small[@]}" --epochs 8 --topology ring --out "$directory/parts")
expect_on_the_way "parts" "parts                         {2, 3} and {0}; all figures: the first" \
  "$directory/parts/metrics/0.jsonl" kill_victims -- "$fastrun" -n 5 "${run[@]}"

# The neighbors of one that is killed train on its samples from the next epoch on.
victims="1"
run=("$directory/rank" "$train" "${small[@]}" --epochs 12 --shards dirichlet:0.1 --take-over --out "$directory/skewed")
expect_on_the_way "taking over" "worker 0: trains on its 200 samples and on 100 of workers that are gone (1)" \
  "$directory/skewed/metrics/0.jsonl" kill_victims -- "$fastrun" -n 3 "${run[@]}"
text="worker 2: trains on its 200 samples and on 100 of workers that are gone (1)"
grep -qF "$text" "$directory/output" || report_failure "taking over: no \"$text\""
echo "$failures failures"
[[ $failures -eq 0 ]]
