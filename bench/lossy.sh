#!/bin/bash
# lossy.sh: net_bench between two hosts (network namespaces) whose network loses packets at random, both ways.
#
#   bench/lossy.sh --plugin PATH [options]
#
# For each share of loss: bare sockets first, as many as the plugin has lanes for bulk, then the plugin, and their ratio.
#
# Units:   percent of packets; Mbit/s of payload that was acknowledged (tcpi_bytes_acked).
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces or
#          has no tc, nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk. Leaves nothing behind.
# Source:  unshare(1), nft(8), ss(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: lossy.sh --plugin PATH [options]

  --plugin PATH        the plugin's .so
  --loss LIST          shares in percent, to a tenth (default 0,0.1,1,5)
  --flows N            sockets that carry the bulk; the plugin gets lane 0 besides (default 4)
  --rate MBIT          what the link passes (default 1000)
  --net-bench PATH     default: net_bench beside the script, or as Bazel builds it with --config=opt
  --size SIZE          of the messages (default 1M)
  --window N           messages in flight (default 8)
  --seconds N          of each measurement, after one second to settle (default 5)
  --mtu N              of both hosts (default 1500)
  --congestion NAME    cubic, bbr, ... (default: the system's)

Everything else (TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment.
TEXT
}

wrong() {
  echo "lossy.sh: $*" >&2
  exit 2
}

source "$(dirname "${BASH_SOURCE[0]}")/../tests/netns/netns.sh"
arguments=("$@")
loss=0,0.1,1,5 flows=4 rate=1000 size=1M window=8 seconds=5 mtu=1500 congestion= plugin= net_bench=
while (($#)); do
  [[ $1 != -h && $1 != --help ]] || { usage; exit 0; }
  (($# > 1)) || wrong "$1 needs a value, or is no option"
  case $1 in
    --plugin) plugin=$2 ;;
    --loss) loss=$2 ;;
    --flows) flows=$2 ;;
    --rate) rate=$2 ;;
    --net-bench) net_bench=$2 ;;
    --size) size=$2 ;;
    --window) window=$2 ;;
    --seconds) seconds=$2 ;;
    --mtu) mtu=$2 ;;
    --congestion) congestion=$2 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift 2
done
[[ $loss =~ ^[0-9]+(\.[0-9])?(,[0-9]+(\.[0-9])?)*$ ]] || wrong "--loss takes PERCENT[,PERCENT]..."
[[ -r $plugin ]] || wrong "--plugin takes the path of the plugin's .so"
for candidate in "$(dirname "$0")/net_bench" bazel-bin/bench/net_bench; do
  [[ -n $net_bench || ! -x $candidate ]] || net_bench=$candidate
done
[[ -x $net_bench ]] || wrong "no net_bench found: give --net-bench PATH"

netns_require ss awk
netns_enter "$0" "${arguments[@]}"

control_port=5000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

hosts() {
  netns_add a b
  netns_link a eth0 b eth0
  netns_address a eth0 10.0.0.1/24
  netns_address b eth0 10.0.0.2/24
  local host
  for host in a b; do
    # One packet is one frame: else 64 KiB at a time get lost, which no network does.
    ip -n "$host" link set eth0 mtu "$mtu" gso_max_segs 1
    netns_shape "$host" eth0 "${rate}mbit"
  done
}

failed() {
  cat "$work/a.log" "$work/b.log"
  echo "lossy.sh: $*"
  exit 1
}

# Bytes that b has acknowledged so far, over all flows but the benchmark's own.
acknowledged() {
  netns_run a ss -tinHO "dst 10.0.0.2 and dport != :$control_port" |
    awk '{ if (match($0, /bytes_acked:[0-9]+/)) sum += substr($0, RSTART + 12, RLENGTH - 12) } END { printf "%.0f", sum }'
}

# measure raw|plugin: sets mbps.
measure() {
  local what=(--raw --conns "$flows" ${congestion:+--raw-cc "$congestion"}) listen=() try
  [[ $1 == raw ]] || what=(--plugin "$plugin")
  [[ $1 == raw ]] || listen=(--plugin "$plugin")
  export TCPX_LANES=$((flows + 1))
  [[ -z $congestion ]] || export TCPX_CONGESTION=$congestion
  netns_run b "$net_bench" --listen "$control_port" "${listen[@]}" >"$work/b.log" 2>&1 &
  local server=$!
  for ((try = 0; try < 100; ++try)); do
    [[ -z $(netns_run b ss -tlnH "sport = :$control_port") ]] || break
    sleep 0.05
  done
  # Far more messages than there is time for: one sample that does not end.
  netns_run a "$net_bench" --connect "10.0.0.2:$control_port" "${what[@]}" --mode bandwidth -b "$size" -n 100000000 \
    -w 0 --samples 1 --budget 3600 --window "$window" --phase any --no-priority >"$work/a.log" 2>&1 &
  local driver=$! before after from to
  for ((try = 0; try < 400; ++try)); do
    (($(acknowledged) < 1000000)) || break
    kill -0 "$driver" 2>/dev/null || failed "net_bench ended early"
    sleep 0.05
  done
  sleep 1
  from=$EPOCHREALTIME before=$(acknowledged)
  sleep "$seconds"
  to=$EPOCHREALTIME after=$(acknowledged)
  kill -0 "$driver" 2>/dev/null || failed "net_bench ended early"
  mbps=$(awk -v b=$((after - before)) -v f="$from" -v t="$to" 'BEGIN { printf "%.0f", 8 * b / (t - f) / 1e6 }')
  kill -TERM "$driver" "$server" 2>/dev/null || true
  wait "$driver" "$server" 2>/dev/null || true
  for ((try = 0; try < 100; ++try)); do
    [[ -n $(netns_run b ss -tlnH "sport = :$control_port") ]] || break
    sleep 0.05
  done
}

hosts
echo "# messages of $size, $window in flight, $flows flows, link of $rate Mbit/s, MTU $mtu," \
  "${congestion:-$(netns_run a sysctl -n net.ipv4.tcp_congestion_control)}, losses both ways"
echo "  loss %  bare Mbit/s  plugin Mbit/s  ratio"
for share in ${loss//,/ }; do
  per_mille=$(awk -v share="$share" 'BEGIN { printf "%d", share * 10 + 0.5 }')
  for host in a b; do
    ((per_mille == 0)) || netns_lose "$host" "$per_mille" meta l4proto tcp tcp dport != $control_port tcp sport != $control_port
  done
  measure raw
  bare=$mbps
  measure plugin
  awk -v s="$share" -v b="$bare" -v p="$mbps" 'BEGIN { printf "%8s %12.0f %14.0f  %5.2f\n", s, b, p, (b > 0 ? p / b : 0) }'
  for host in a b; do netns_run "$host" nft flush ruleset; done
done
