#!/usr/bin/env bash
# detection.sh BIN [CONDITION...]: how long workers need to notice a death, and how often they suspect a worker that
# lives, with --suspect-after auto and 5. BIN is the folder of the built programs. The output is a table. CONDITIONs:
#   quiet    12 ranks on this host
#   loaded   the same beside 8 busy processes
#   played   without ranks: signs of life that come up to 200 ms late
#   jitter   12 ranks on two hosts, network namespaces of this machine; the link has delay=200ms jitter=200ms. Needs root
#            and BIN/switch.
# DEATHS=10 ranks die, one every EVERY=7 s after 10 s, and WATCH=10 s follow.
set -euo pipefail
bin=$(readlink -f "${1:?the folder of the built programs}")
shift
[[ $# -gt 0 ]] || set -- quiet loaded played jitter
here=$(dirname "$(readlink -f "$0")")
hosts=${HOSTS:-$here/../tests/hosts/hosts.sh}
deaths=${DEATHS:-10}
directory=$(mktemp -d)
busy=()
end() {
  [[ ${#busy[@]} -eq 0 ]] || kill "${busy[@]}" 2>/dev/null || true
  [[ -z ${on_hosts:-} ]] || "$hosts" down
  rm -rf "$directory"
}
trap end EXIT

measure() { # CONDITION SETTING
  local out=$directory/$1-$2
  mkdir "$out"
  local options=(--suspect-after "$2" --deaths "$deaths" --out "$out")
  if [[ $1 == played ]]; then
    "$bin/bench_detection" "${options[@]}" --played-jitter 200
    return
  fi
  local ranks=$((deaths + 2)) places=()
  [[ $1 != jitter ]] || places=(--hosts "10.99.0.1:$((ranks / 2)),10.99.0.2:$((ranks - ranks / 2))")
  timeout -k 5 600 "$bin/fastrun" -n $ranks "${places[@]}" --min-workers 2 "$bin/bench_detection" "${options[@]}" \
    --every "${EVERY:-7}" --watch "${WATCH:-10}" >"$out/log" 2>&1 </dev/null 9>&- || { tail -5 "$out/log" >&2; exit 1; }
}

for condition; do
  if [[ $condition == loaded ]]; then
    for _ in 1 2 3 4 5 6 7 8; do
      bash -c 'while :; do :; done' &
      busy+=($!)
    done
  fi
  if [[ $condition == jitter ]]; then
    exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
    flock 9
    on_hosts=yes
    "$hosts" up 2 --switch "${SWITCH:-$bin/switch}"
    "$hosts" link 1 2 delay=200ms jitter=200ms
    export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$hosts HYDRA_IFACE=fasthosts
  fi
  for setting in auto 5; do measure "$condition" $setting; done
  if [[ ${#busy[@]} -gt 0 ]]; then
    kill "${busy[@]}"
    wait "${busy[@]}" 2>/dev/null || true
    busy=()
  fi
  if [[ ${on_hosts:-} ]]; then
    "$hosts" down
    exec 9>&-
    unset on_hosts HYDRA_LAUNCHER HYDRA_LAUNCHER_EXEC HYDRA_IFACE
  fi
done

python3 - "$directory" "$@" <<'PYTHON'
import pathlib
import statistics
import sys

directory = pathlib.Path(sys.argv[1])


def figures(run):
    died, suspicions, ends = {}, [], []
    for path in run.glob("rank-*"):
        for line in path.read_text().splitlines():
            what, *rest = line.split()
            at = float(rest[-1])
            if what == "died":
                died[int(rest[0])] = at
            elif what == "suspects":
                suspicions.append((path.name, int(rest[0]), at))
            else:
                ends.append(at)
    # One rank that is the first to suspect continues, and others see that: each counts for itself.
    first, false = {}, 0
    for observer, worker, at in sorted(suspicions, key=lambda s: s[2]):
        if worker not in died or at < died[worker]:
            false += 1
        else:
            first.setdefault((observer, worker), at - died[worker])
    # A rank that dies later must have noticed; one that died before it could does not count.
    missed = sum((observer.name, worker) not in first
                 for observer in run.glob("rank-*") for worker in died
                 if "end" in observer.read_text())
    return list(first.values()), false, missed, len(died)


print("| condition | `--suspect-after` | deaths | noticed after, s: median (longest) | never noticed | living workers suspected |")
print("|---|---|---|---|---|---|")
for condition in sys.argv[2:]:
    for setting in ("auto", "5"):
        times, false, missed, deaths = figures(directory / f"{condition}-{setting}")
        print(f"| {condition} | {setting} | {deaths} | {statistics.median(times):.2f} ({max(times):.2f}) | {missed} | {false} |")
PYTHON
