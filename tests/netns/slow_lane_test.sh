#!/bin/bash
# slow_lane_test: of three flows one is given a tenth of what the others get: the log names it, and the statistics count
#                 it.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter_each "$0" "slow 0" "slow 2"

# sent: "BYTES PORT" of each flow that host a sends data on, most first. Those that b dialled have the listening port.
sent() {
  netns_sent a dst 10.1.0.2 | awk '
    { sub(/.*:/, "", $2); ++flows[$2]; bytes[$2] = $1 }
    END { for (port in flows) if (flows[port] == 1) print bytes[port] + 0, port }' | sort -rn
}

# limit RATE PORT...: of each flow.
limit() {
  local rate=$1 port
  shift
  for port in "$@"; do netns_class a eth0 "$rate" tcp sport "$port"; done
}

# named NAME: the log of rank 0 names the limited flow, and its statistics count it.
named() { grep -qsE "INFO.*10.1.0.1:$slow_port .*a slow lane" "$scratch/$1/log.0.0"; }

# attempt NAME ENVIRONMENT...: a connection with a slow lane until the log names it, or for a while. Sets slow_port.
attempt() {
  local name=$1 ports
  shift
  start "$name" "a b" TCPX_LANES=4 TCPX_STALL_WARN=0.5 "$@" || return 1
  # Without limits one lane may carry all; with them each must help. Lane 0, which carries the short messages, sends
  # least.
  mapfile -t ports < <(sent | awk '{ print $2 }')
  limit 80mbit "${ports[@]}"
  three_carry a 10.1.0.2
  mapfile -t ports < <(sent | awk 'NR <= 3 { print $2 }')
  slow_port=${ports[1]}
  netns_heal a eth0
  limit 8mbit "$slow_port"
  limit 80mbit "${ports[0]}" "${ports[2]}"
  patience=5 await named "$name" || true
  netns_heal a eth0
  finish "$name" 0 1
  ended "$name" 0 stopped ""
}

slow() {
  local try name
  # A machine that has no time for the ranks leaves the lanes idle, and idle lanes are not judged.
  for try in 1 2 3 4; do
    name="slow $1 $try"
    attempt "$name" "TCPX_THREADS=$1" || return 0
    ! named "$name" || ! grep 'INFO.*lanes that became slow: [1-9]' "$scratch/$name/log.0.end" || return 0
  done
  fail "$name: the slow lane was not named" "$scratch/$name/log.0.end"
}

netns_pair eth0 10.1.0.
# With healing a message is done when it is acknowledged, and of the four in flight too few are left for the other lanes
# while the slow one holds one: then they idle, and what idles is not always judged.
export TCPX_HEAL=0
netns_case
