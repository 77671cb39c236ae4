#!/usr/bin/env bash
# The switch between hosts gives the delay, jitter, loss and rate that were asked for.   switch_test.sh SWITCH
# 77: cannot be done here
set -uo pipefail
switch=$1
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh measure=$here/measure.py
why=$("$hosts" check switch) || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
trap '"$hosts" down' EXIT
why=$("$hosts" up 3 --switch "$switch" 2>&1) || { echo "skipped: no TAP devices: $why"; exit 77; }
failures=0
expect() { "$measure" expect "$@" || failures=$((failures + 1)); } # LOW VALUE HIGH WHAT
on_host_1() { timeout -k 5 60 nsenter --net=/run/netns/fasthost1 "$measure" "$@"; }
# settings WORD...: those words alone, between hosts 1 and 2.
settings() { "$hosts" link 1 2 clear "$@" || failures=$((failures + 1)); }
for i in 2 3; do
  nsenter --net="/run/netns/fasthost$i" "$measure" answer </dev/null >/dev/null 2>&1 9>&- & disown
done
for ((i = 0; i < 100; ++i)); do on_host_1 rate 10.99.0.2 1 >/dev/null 2>&1 && on_host_1 rate 10.99.0.3 1 >/dev/null 2>&1 && break || sleep 0.1; done

# delays COUNT HOST FIELD LOW HIGH WHAT: FIELD 1 is the median, 2 the deviation. A busy machine adds to them, so this
# measures up to five times, until the value is within the bounds.
delays() {
  local count=$1 host=$2 field=$3 low=$4 high=$5 what=$6 values
  for ((try = 1; try <= 5; ++try)); do
    read -ra values <<<"$(on_host_1 delay "$host" "$count")"
    "$measure" expect "$low" "${values[field - 1]:-none}" "$high" "$what" >/dev/null && return
  done
  expect "$low" "${values[field - 1]:-none}" "$high" "$what"
}

delays 50 10.99.0.2 1 0 10 "ms there and back on a link without settings" # of an idle machine: 0.1
settings delay=40ms
delays 20 10.99.0.2 1 80 95 "ms there and back with delay=40ms"
delays 50 10.99.0.3 1 0 10 "ms there and back on the link beside it"
for shape in normal lognormal; do # the deviations of both ways: 8 ms · √2 = 11.3 ms; ± 4 standard errors
  settings delay=20ms jitter=8ms shape=$shape
  delays 80 10.99.0.2 1 34 50 "ms there and back with delay=20ms jitter=8ms, $shape"
  delays 80 10.99.0.2 2 6.2 18 "ms of standard deviation of that"
done
settings loss=10% # of both ways: 1 - .9² = .19; of 2,000: ± 4 standard errors
expect 0.155 "$(on_host_1 loss 10.99.0.2 2000)" 0.225 "of datagrams lost with loss=10%"
settings rate=8mbit
expect 6 "$(on_host_1 rate 10.99.0.2 2000000)" 8.1 "Mbit/s with rate=8mbit"
settings cut
expect 1 "$(on_host_1 loss 10.99.0.2 20)" 1 "of datagrams lost on a cut link"
settings
expect 0 "$(on_host_1 loss 10.99.0.2 500)" 0.01 "of datagrams lost after all has been cleared"
"$hosts" cut
expect 1 "$(on_host_1 loss 10.99.0.3 20)" 1 "of datagrams lost after cut"
"$hosts" mend
expect 0 "$(on_host_1 loss 10.99.0.3 20)" 0 "of datagrams lost after mend"
answer=$("$hosts" link 1 2 delay=-3ms 2>&1) && { echo "FAILED: delay=-3ms is accepted"; failures=$((failures + 1)); }
[[ $answer == "switch: delay=-3ms: a number from 0 on"* ]] || { echo "FAILED: $answer"; failures=$((failures + 1)); }
"$hosts" kill 2
expect 1 "$(on_host_1 loss 10.99.0.2 20 2>/dev/null || echo 1)" 1 "of datagrams lost to a host that is gone"
echo "$failures failures"
[[ $failures -eq 0 ]]
