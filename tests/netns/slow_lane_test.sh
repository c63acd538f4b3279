#!/bin/bash
# slow_lane_test: of three flows one is given a tenth of what the others get: the log names it, and the statistics count it.
set -euo pipefail
source common/netns/netns.sh
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

# named NAME: the log of rank 0 names the limited flow.
named() {
  grep -qE "INFO.*10.1.0.1:$slow_port .*a slow lane" "$scratch/$1/log.0.end" &&
    grep 'INFO.*lanes that became slow: [1-9]' "$scratch/$1/log.0.end"
}

# attempt NAME ENVIRONMENT...: a connection with a slow lane for some seconds. Sets slow_port.
attempt() {
  local name=$1 ports
  shift
  start "$name" "a b" TCPX_LANES=4 TCPX_STALL_WARN=0.5 "$@" || return 1
  # Without limits one lane may carry all; with them each must help. Lane 0, which carries the short messages, sends least.
  mapfile -t ports < <(sent | awk '{ print $2 }')
  limit 80mbit "${ports[@]}"
  sleep 1
  mapfile -t ports < <(sent | awk 'NR <= 3 { print $2 }')
  slow_port=${ports[1]}
  netns_heal a eth0
  limit 8mbit "$slow_port"
  limit 80mbit "${ports[0]}" "${ports[2]}"
  sleep 4
  netns_heal a eth0
  finish "$name" 0 1
  ended "$name" 0 stopped ""
}

hosts
# With healing a message is done when it is acknowledged, and of the four in flight too few are left for the other lanes
# while the slow one holds one: then they idle, and what idles is not always judged.
export TCPX_HEAL=0
for threads in 0 2; do
  # A machine that has no time for the ranks leaves the lanes idle, and idle lanes are not judged.
  for try in 1 2 3 4; do
    name="slow $threads $try"
    attempt "$name" "TCPX_THREADS=$threads" || break
    ! named "$name" || break
    ((try < 4)) || { cat "$scratch/$name/log.0.end"; fail "$name: the slow lane was not named"; }
  done
done

exit $((failures > 0))
