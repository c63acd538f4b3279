#!/bin/bash
# scale.sh: what many connections between two hosts (network namespaces) take.
#
#   bench/netns/scale.sh --plugin PATH [--connections N,N,...] [--lanes N] [options]
#
# Units:   bytes, seconds; memory of the kernel is the growth of Slab, of both hosts together. Packets of an idle host,
#          sent and received, take a minute to be seen: --seconds 80.
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces: a
#          line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, awk. Cleans up after itself.
# Source:  proc(5), ss(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scale.sh --plugin PATH [options]

  --connections L    numbers of connections (default 1000,4000,10000)
  --lanes N          TCPX_LANES: sockets of each (default 1)
  --seconds N        idle with them (default 5)
  --plugin PATH      the plugin's .so
  --net-bench PATH   default: net_bench next to the script, or as Bazel builds it with --config=opt
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
numbers=1000,4000,10000 lanes=1 seconds=5
# shellcheck disable=SC2034  # read_options reads both.
declare -A sets=()
# shellcheck disable=SC2034
declare -A takes=([--plugin]=plugin [--net-bench]=net_bench [--connections]=numbers [--lanes]=lanes
  [--seconds]=seconds)
read_options "$@"
require_plugin
find_net_bench

netns_enter "$0" "$@"

slab() { awk '$1 == "Slab:" { print 1024 * $2 }' /proc/meminfo; }
# How many sockets the plugin has.
sockets() {
  netns_run "$1" ss -tanH exclude time-wait |
    awk -v port=":$control_port" '$4 !~ port "$" && $5 !~ port "$"' | wc -l
}
packets() { echo $(($(counter "$1" IpInReceives) + $(counter "$1" IpOutRequests))); }
# Seconds of a CPU so far: of net_bench, and of the processes that it has started.
cpu() {
  local one
  for one in "$1" $(pgrep -P "$1"); do cut -d' ' -f14,15 "/proc/$one/stat"; done |
    awk -v ticks="$(getconf CLK_TCK)" '{ sum += $1 + $2 } END { printf "%.2f", sum / ticks }'
}
counter() { netns_run "$1" nstat -asz "$2" | awk -v name="$2" '$1 == name { print $2 }'; }

measure() {
  local count=$1 before idle=0 state kernel now i sent
  control_port=$((control_port + 1))
  before=$(slab)
  serve "$count" "$control_port" --plugin "$plugin" --no-priority --timeout 300
  drive "$count" "10.0.0.2:$control_port" --plugin "$plugin" --mode idle --seconds "$seconds" --conns "$count" \
    --no-priority --yield --json --timeout 300
  state=0
  # All are up once their number no longer grows.
  for ((i = 0; i < 1200; ++i)); do
    has_ended "$count" a && break
    now=$(sockets a)
    if ((now > 0 && now == state)); then
      if ((++idle >= 3)); then break; fi
    else
      idle=0
    fi
    state=$now
    sleep 0.3
  done
  kernel=$(($(slab) - before))
  printf '%d connections: %d sockets at a, %d at b; kernel %d bytes a socket, %s\n' "$count" "$state" \
    "$(sockets b)" $((kernel / (state > 0 ? 2 * state : 1))) \
    "listen overflows $(counter b TcpExtListenOverflows)"
  printf '  CPU until then: %s s at a, %s s at b\n' "$(cpu "${pid[$count.a]}")" "$(cpu "${pid[$count.b]}")"
  if ((seconds >= 80)); then
    # Each connection carries a few messages first.
    sleep 15
    sent=$(packets a)
    sleep 60
    printf '  host a idle: %d packets in 60 s\n' $(($(packets a) - sent))
  fi
  wait "${pid[$count.a]}" || failed "net_bench ended with an error"
  awk -v count="$count" '
    function value(name,    at) {
      at = match($0, "\"" name "\": [0-9.e+-]+")
      return substr($0, at + length(name) + 4, RLENGTH - length(name) - 4) + 0
    }
    /"setup_seconds"/ {
      printf "  rank %d: %.2f s to connect all, %.2f descriptors and %.0f bytes of the plugin a connection, %.3f %% of a CPU idle\n",
        value("rank"), value("setup_seconds"), (value("descriptors") - value("descriptors_before")) / count,
        (value("resident_bytes") - value("resident_bytes_before")) / count,
        100 * value("idle_cpu_seconds") / value("idle_seconds") }' "$scratch/$count"/a.log
  stop "$count"
}

join_hosts 1500 10.0.0.
ulimit -n "$(ulimit -Hn)" || true
netns_run a sysctl -qw net.ipv4.ip_local_port_range='1024 65535'
export TCPX_LANES=$lanes
for number in ${numbers//,/ }; do measure "$number"; done
