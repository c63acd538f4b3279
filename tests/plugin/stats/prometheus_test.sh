#!/bin/bash
# The file of TCPX_STATS_DIR under promtool, and served to a real Prometheus by node_exporter's textfile collector.
#
# Every panel of the dashboard asks it, and is answered with data.
#
# usage: prometheus_test.sh NET_BENCH PLUGIN DASHBOARD_QUERIES DASHBOARD [ANSWERS]
# Needs promtool, prometheus and prometheus-node-exporter (Debian's packages prometheus and prometheus-node-exporter).
set -euo pipefail

for tool in promtool prometheus prometheus-node-exporter curl; do
  command -v "$tool" >/dev/null || {
    echo "FAILED: $tool is missing; apt-get install --no-install-recommends prometheus prometheus-node-exporter curl"
    exit 1
  }
done
scratch=$(mktemp -d)
children=()
finish() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT
mkdir "$scratch/textfile" "$scratch/db"

# Waits for a command to succeed.
await() {
  local i
  for ((i = 0; i < 600; i++)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "FAILED: not within a minute: $*"
  exit 1
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

NCCL_SOCKET_IFNAME=lo TCPX_STATS_DIR=$scratch/textfile TCPX_STATS_LANES=1 TCPX_LANES=3 TCPX_THREADS=1 \
  "$1" --plugin "$2" --mode bidir -b 1M -e 1M --no-priority --phase any --sample-ms 1000 --samples 500 --budget 500 \
  >"$scratch/bench.log" 2>&1 &
children+=($!)
traffic() { grep -qs '^tcpx_sent_bytes_total{.*class="bulk"} [1-9]' "$scratch"/textfile/*.prom; }
await traffic
for file in "$scratch"/textfile/*.prom; do
  # It warns of nothing, and says so by its exit code.
  promtool check metrics <"$file"
done

node_port=$(free_port)
prometheus-node-exporter --web.listen-address="127.0.0.1:$node_port" --collector.disable-defaults --collector.textfile \
  --collector.textfile.directory="$scratch/textfile" >"$scratch/node.log" 2>&1 &
children+=($!)
port=$(free_port)
cat >"$scratch/prometheus.yml" <<YML
global: {scrape_interval: 1s}
scrape_configs: [{job_name: node, static_configs: [{targets: ["127.0.0.1:$node_port"]}]}]
YML
prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/db" \
  --web.listen-address="127.0.0.1:$port" >"$scratch/prometheus.log" 2>&1 &
children+=($!)
query() { curl -sf "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1"; }
has() { query "$1" | grep -q '"value":\[[0-9.]*,"[1-9]'; }
await has 'sum(tcpx_sent_bytes_total)'
await has 'sum(tcpx_connections)'
await has 'count(tcpx_lane_bytes_total)'
# The collector could read every file.
query 'node_textfile_scrape_error' | grep -q '"0"' || { echo "FAILED: node_exporter could not read a file"; exit 1; }
python3 "$3" "http://127.0.0.1:$port" "$4" "${@:5}"
echo "passed: promtool, node_exporter and Prometheus take what the plugin writes"
