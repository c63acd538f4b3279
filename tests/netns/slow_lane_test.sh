#!/bin/bash
# slow_lane_test: of three flows one is given a tenth of what the others get: the log names it, and the statistics count it.
set -euo pipefail
source tests/netns/netns.sh
source tests/netns/ring.sh
netns_require ss
netns_enter "$0" "$@"

# sent: "bytes port" of each flow that host a sends data on, most first. Those that b dialled have the listening port.
sent() {
  netns_run a ss -tinHO "dst 10.1.0.2" | awk '
    { split($4, local, ":"); flows[local[2]]++
      if (match($0, /bytes_acked:[0-9]+/)) bytes[local[2]] = substr($0, RSTART + 12, RLENGTH - 12) }
    END { for (port in flows) if (flows[port] == 1) print bytes[port] + 0, port }' | sort -rn
}

# limit RATE PORT...: of each flow.
limit() {
  local rate=$1 port
  shift
  for port in "$@"; do netns_class a eth0 "$rate" tcp sport "$port"; done
}

hosts
for threads in 0 2; do
  name="slow $threads"
  start "$name" "a b" TCPX_LANES=4 TCPX_STALL_WARN=0.5 "TCPX_THREADS=$threads" || continue
  # Without limits one lane may carry all; with them each must help. Lane 0, which carries the short messages, sends least.
  mapfile -t ports < <(sent | awk '{ print $2 }')
  limit 80mbit "${ports[@]}"
  sleep 1
  mapfile -t ports < <(sent | awk 'NR <= 3 { print $2 }')
  netns_heal a eth0
  limit 8mbit "${ports[1]}"
  limit 80mbit "${ports[0]}" "${ports[2]}"
  sleep 4
  netns_heal a eth0
  finish "$name" 0 1
  ended "$name" 0 stopped "INFO.*10.1.0.1:${ports[1]} .*a slow lane" || true
  grep 'INFO.*lanes that became slow: [1-9]' "$scratch/$name/log.0.end" || fail "$name: not in the statistics"
done

exit $((failures > 0))
