#!/usr/bin/env bash
# A real Prometheus scrapes four workers; promtool checks names and units.
#   prometheus_test.sh FAST_TRAIN MPIEXEC       77: no Prometheus here
set -uo pipefail
train=$1 mpiexec=$2
for program in prometheus promtool curl; do
  command -v $program >/dev/null || { echo "skipped: no $program here (apt-get install prometheus curl)"; exit 77; }
done
directory=$(mktemp -d)
jobs=()
trap 'kill "${jobs[@]}" 2>/dev/null; wait; rm -rf "$directory"' EXIT
source "$(dirname "$(readlink -f "$0")")/../support/expect.sh"
is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
for ((i = 0; i < 100; ++i)); do
  port=$((20000 + RANDOM % 10000)) server=$((port + 10))
  is_free $port && is_free $((port + 1)) && is_free $((port + 2)) && is_free $((port + 3)) && is_free $server && break
done
cat >"$directory/prometheus.yml" <<YML
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: fast
    static_configs: [{targets: ["127.0.0.1:$port", "127.0.0.1:$((port + 1))", "127.0.0.1:$((port + 2))", "127.0.0.1:$((port + 3))"]}]
YML
prometheus --config.file="$directory/prometheus.yml" --storage.tsdb.path="$directory/data" \
  --web.listen-address="127.0.0.1:$server" >"$directory/prometheus.out" 2>&1 &
jobs+=($!)
timeout -k 5 150 "$mpiexec" -n 4 "$train" --samples 4000 --model mlp --step-ms 5 --epochs 600 --quiet \
  --metrics-port $port --checkpoint-every 20 --checkpoints "$directory/saved" >"$directory/train.out" 2>&1 &
jobs+=($!)

# ask QUERY: the values, by worker
ask() { curl -s -G "http://127.0.0.1:$server/api/v1/query" --data-urlencode "query=$1" 2>/dev/null; }
answer=""
for ((i = 0; i < 400; ++i)); do # up to 80 s
  answer=$(ask 'count(rate(fast_rounds_total[5s]) > 0)')
  [[ $answer == *'"4"'* ]] && break || sleep 0.2
done
echo "$answer" >"$directory/output"
[[ $answer == *'"4"'* ]] || report_failure "four workers make rounds"

curl -s "http://127.0.0.1:$port/metrics" >"$directory/output"
for text in 'fast_phase_seconds_total{worker="0",phase="wait"}' 'fast_rounds_total{worker="0"}' \
  'fast_read_age_rounds_bucket{worker="0",le="0"}' 'fast_reads_total{worker="0",fresh="true"}' \
  'fast_scalar_train_loss{worker="0"}' 'fast_checkpoints_total{worker="0"}'; do
  grep -qF -e "$text" "$directory/output" || report_failure "no $text"
done
cp "$directory/output" "$directory/metrics"
promtool check metrics <"$directory/metrics" >"$directory/output" 2>&1 || report_failure "promtool"

# Steps are paced: each takes 5 ms at least.
ask 'sum by (worker) (fast_phase_seconds_total{phase="step"}) / sum by (worker) (fast_rounds_total)' >"$directory/output"
python3 - "$directory/output" <<'PY' || report_failure "seconds of a step"
import json, sys
rows = json.load(open(sys.argv[1]))["data"]["result"]
steps_s = [float(row["value"][1]) for row in rows]
assert len(steps_s) == 4 and all(.0049 < step_s for step_s in steps_s), steps_s
PY
# Each query of the dashboard has an answer.
grafana=$(dirname "$(readlink -f "$0")")/../../deploy/grafana/training.json
python3 - "$grafana" "http://127.0.0.1:$server" >"$directory/output" 2>&1 <<'PY' || report_failure "the dashboard"
import json, sys, urllib.parse, urllib.request
board, server = json.load(open(sys.argv[1])), sys.argv[2]
failed = 0
for panel in board["panels"]:
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", "10s").replace("$worker", ".+")
        url = server + "/api/v1/query?" + urllib.parse.urlencode({"query": query})
        rows = json.load(urllib.request.urlopen(url))["data"]["result"]
        happens = "fast_peer_events_total" not in query  # nothing happens to these workers
        if happens and not rows:
            failed += 1
            print(f"{panel['title']}: no answer to {query}")
sys.exit(failed)
PY
expect "a port in use" 0 "test accuracy" "cannot listen on 127.0.0.1 port $port: Address already in use; choose another port or address" -- \
  "$mpiexec" -n 1 "$train" --samples 300 --model mlp --epochs 1 --metrics-port $port
echo "$failures failures"
[[ $failures -eq 0 ]]
