#!/bin/bash
# lossy.sh: net_bench between two hosts (network namespaces) whose network loses packets at random, both ways.
#
#   bench/netns/lossy.sh --plugin PATH [options]
#
# For each share of loss: bare sockets first, as many as the plugin has lanes for bulk, then the plugin, and their
# ratio.
#
# Units:   percent of packets; Mbit/s of payload that was acknowledged (tcpi_bytes_acked).
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces or
#          has no tc, nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk. Leaves nothing.
# Source:  unshare(1), nft(8), ss(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: lossy.sh --plugin PATH [options]

  --plugin PATH        the plugin's .so
  --loss LIST          shares in percent, to a tenth (default 0,0.1,1,5)
  --flows N            sockets that carry the bulk; the plugin also gets lane 0 (default 4)
  --rate MBIT          what the link passes (default 1000)
  --net-bench PATH     default: net_bench next to the script, or as Bazel builds it with --config=opt
  --size SIZE          of the messages (default 1M)
  --window N           messages in flight (default 8)
  --seconds N          of each measurement, after one second to settle (default 5)
  --mtu N              of both hosts (default 1500)
  --congestion NAME    cubic, bbr, ... (default: the system's)

Everything else (TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
loss=0,0.1,1,5 flows=4 rate=1000 size=1M window=8 seconds=5 mtu=1500 congestion=
declare -A sets=()
declare -A takes=([--plugin]=plugin [--loss]=loss [--flows]=flows [--rate]=rate [--net-bench]=net_bench [--size]=size
  [--window]=window [--seconds]=seconds [--mtu]=mtu [--congestion]=congestion)
read_options "$@"
[[ $loss =~ ^[0-9]+(\.[0-9])?(,[0-9]+(\.[0-9])?)*$ ]] || wrong "--loss takes PERCENT[,PERCENT]..."
require_plugin
find_net_bench
netns_enter "$0" "$@"

hosts() {
  local host
  join_hosts "$mtu" 10.0.0.
  for host in a b; do
    # One packet is one frame: else 64 KiB at a time get lost, which no network does.
    ip -n "$host" link set eth0 gso_max_segs 1
    netns_shape "$host" eth0 "${rate}mbit" 128kb
  done
}

nobody_listens() { ! netns_listens b "$control_port"; }

# measure raw|plugin: sets mbps.
measure() {
  local what=(--raw --conns "$flows" ${congestion:+--raw-cc "$congestion"}) listen=() before after from to
  [[ $1 == raw ]] || what=(--plugin "$plugin") listen=(--plugin "$plugin")
  export TCPX_LANES=$((flows + 1))
  [[ -z $congestion ]] || export TCPX_CONGESTION=$congestion
  serve lossy "$control_port" "${listen[@]}"
  drive lossy "10.0.0.2:$control_port" "${what[@]}" "${endless[@]}" -b "$size" --window "$window"
  patience=20 await moves lossy acknowledged_beyond 1000000 || true
  sleep 1
  from=$EPOCHREALTIME before=$(acknowledged_in_all)
  sleep "$seconds"
  to=$EPOCHREALTIME after=$(acknowledged_in_all)
  still_running lossy
  mbps=$(mbps $((after - before)) "$from" "$to")
  stop lossy
  await nobody_listens || true
}

hosts
echo "# messages of $size, $window in flight, $flows flows, link of $rate Mbit/s, MTU $mtu," \
  "$(congestion_name "$congestion"), losses both ways"
echo "  loss %  bare Mbit/s  plugin Mbit/s  ratio"
for share in ${loss//,/ }; do
  per_mille=$(awk -v share="$share" 'BEGIN { printf "%d", share * 10 + 0.5 }')
  for host in a b; do
    ((per_mille == 0)) ||
      netns_lose "$host" "$per_mille" meta l4proto tcp tcp dport != $control_port tcp sport != $control_port
  done
  measure raw
  bare=$mbps
  measure plugin
  awk -v s="$share" -v b="$bare" -v p="$mbps" \
    'BEGIN { printf "%8s %12.0f %14.0f  %5.2f\n", s, b, p, (b > 0 ? p / b : 0) }'
  for host in a b; do netns_heal "$host"; done
done
