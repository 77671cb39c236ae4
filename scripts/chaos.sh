#!/usr/bin/env bash
# Runs to which something happens, by a seed:  scripts/chaos.sh [--rules all] [--events all] [--count 500] [--seed 1] [--jobs 3]
# --rules all (the default), or awc,push_sum; --events all (the default), or kill,stop,slow,start,end,clock,memory,disk,save
# and, between hosts, cut,delay,rate,loss,host; the last one is the death of a host.
# Some schedules are on two or three hosts (network namespaces and a switch in user space; needs root), unless --one-host.
# --two-hosts and --three-hosts: all of them. A schedule that fails is shrunk, and its line printed for  --replay 'LINE'.
# --from NUMBER --count 1: that schedule alone; --show: the output of all runs; --dry: the schedules only.
# --devices: weights on devices, as the host plays them; --lenet: LeNet on Fashion-MNIST, compared with runs that nothing happens to.
set -euo pipefail
cd "$(dirname "$0")/.."
hosts=(--hosts "$PWD/tests/hosts/hosts.sh") arguments=()
for argument in "$@"; do
  case $argument in
  --one-host) hosts=() ;;
  --two-hosts) arguments+=(--host-count 2 --all-on-hosts) ;;
  --three-hosts) arguments+=(--host-count 3 --all-on-hosts) ;;
  *) arguments+=("$argument") ;;
  esac
done
set -- "${arguments[@]}"
[[ " $* " == *" --count"* ]] || set -- --count 500 "$@"
[[ " $* " == *" --rules"* ]] || set -- --rules all "$@"
why=$(tests/hosts/hosts.sh check switch) || { echo "schedules are on one host: $why"; hosts=(); }
scripts/setup.sh test
scripts/build.sh release chaos fastrun fast-train switch
exec build/release/bin/chaos build/release/bin/fastrun "${hosts[@]}" "$@"
