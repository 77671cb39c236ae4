#!/usr/bin/env bash
# Kills, stops and slows workers of many runs, by a seed:  scripts/chaos.sh [--count 1000] [--seed 1] [--from 0]
# A schedule that fails is told with its number:  scripts/chaos.sh --seed S --from NUMBER --count 1  has it again.
# --rules all draws from all rules that bear a death, --rules push_sum,d2 from these; without it, from awc and atc.
# --jobs 3: three schedules at a time; --devices: weights on devices, as the host plays them; --lenet: LeNet on
# Fashion-MNIST, compared with runs that nothing happens to.
# --two-hosts: workers on two hosts (network namespaces; needs root), whose link is cut, too; --three-hosts: on three.
set -euo pipefail
cd "$(dirname "$0")/.."
arguments=()
for argument in "$@"; do
  case $argument in
  --two-hosts) arguments+=(--hosts "$PWD/tests/hosts/hosts.sh") ;;
  --three-hosts) arguments+=(--hosts "$PWD/tests/hosts/hosts.sh" --host-count 3) ;;
  *) arguments+=("$argument") ;;
  esac
done
set -- "${arguments[@]}"
[[ " $* " == *" --count"* ]] || set -- --count 1000 "$@"
scripts/setup.sh test
scripts/build.sh release chaos fastrun
exec build/release/bin/chaos build/release/bin/fastrun "$@"
