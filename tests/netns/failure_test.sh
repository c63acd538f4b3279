#!/bin/bash
# failure_test: what ends a connection ends it on both sides, soon, and says what it was.
#
# A peer that is killed or reset is known at once, one that falls silent within TCPX_PEER_TIMEOUT, by unacknowledged
# bytes on a busy lane and by the health socket on an idle one.
#
# environment: NETNS_SS_KILLS (100)  lanes to kill under load, by two rings
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter_each "$0" deaths resets half_closed swallowed dropped down kill_lanes kill_lanes
kills=$(((${NETNS_SS_KILLS:-100} + 1) / 2))
export TCPX_HEAL=0  # what is an end without healing; with it see healing_paths_test, healing_middle_test
network='10\.1\.0\.[12]:[0-9]+'
# What a warning has to tell, whatever it was.
full="^WARN .*comm 2a (send|receive) device 0 (lane [0-9] of|all) 3.*$network to $network, connection [0-9a-f]{8}: .*in flight: (message|nothing).*rtt [0-9.]+ ms, [0-9]+ retransmissions, last acknowledgement [0-9.]+ s ago"

netns_pair eth0 10.1.0.

# both_end NAME: each with one line that tells all, and in order once it may.
both_end() {
  local rank
  for rank in 0 1; do ended "$1" "$rank" error "$full" && warnings "$1" "$rank" 1; done
  finish "$1" 0 1
}

killed() {
  local name="killed $1"
  start "$name" "a b" "${@:2}" || return 0
  since=$(now)
  kill -KILL "${pid[$name.1]}"
  ended "$name" 0 error "$full" && warnings "$name" 0 1
  ended "$name" 0 error "10\.1\.0\.2:" || true
  finish "$name" 0
}

deaths() {
  each_mode killed
  # A child that lives must not keep a dead rank's sockets open.
  start forked "a b" 1:RING_FORK=1 && {
    since=$(now)
    kill -KILL "${pid[forked.1]}"
    ended forked 0 error "$full" || true
    finish forked 0
  }
}

# A device on the path resets one lane.
resets() {
  start reset "a b" || return 0
  busy_flow a
  since=$(now)
  if netns_break 'reject with tcp reset' "$flow" a; then
    both_end reset
    grep -qE "WARN.*lane [0-9] of 3.*(reset|Broken pipe)" "$scratch"/reset/log.* || fail "reset: nobody names the lane"
  else
    echo "SKIPPED: reset: this kernel's nft rejects nothing"
    finish reset 0 1
  fi
}

# One side of one lane ends: three that are sent on, three that are received on.
half_closed() {
  local lane
  for ((lane = 0; lane < 6; ++lane)); do
    since=$(now)
    start "half closed $lane" "a b" "0:RING_SHUT=$lane" "TCPX_THREADS=$((lane % 2 * 2))" || continue
    both_end "half closed $lane"
  done
}

# The network swallows one lane; the health socket and the other lanes live.
swallowed() {
  start swallowed "a b" TCPX_PEER_TIMEOUT=2 || return 0
  busy_flow a
  since=$(now)
  netns_break drop "$flow" a b
  both_end swallowed
  grep -qE "WARN.*lane [0-9] of 3.*nothing that was sent has been acknowledged" "$scratch"/swallowed/log.* ||
    fail "swallowed: nobody names the lane"
}

# Nothing passes any more, under load and on connections that only wait.
dropped() {
  local load
  for load in busy idle; do
    start "dropped $load" "a b" TCPX_PEER_TIMEOUT=2 "RING_QUIET=$([[ $load == idle ]] && echo 1 || echo 0)" || continue
    since=$(now)
    netns_drop a
    netns_drop b
    both_end "dropped $load"
    netns_heal a
    netns_heal b
  done
}

# The device of one host goes down for longer than the timeout.
down() {
  start down "a b" TCPX_PEER_TIMEOUT=2 || return 0
  since=$(now)
  netns_cut a eth0
  for rank in 0 1; do ended down "$rank" error "$full" || true; done
  finish down 0 1
}

# Lanes are taken away under load, each time from fresh connections.
kill_one_lane() {
  busy_flow a
  netns_run a ss -KtnH src "${flow% *}" dst "${flow#* }" >/dev/null
}
# slowest FILE...: of each round, when a lane was taken away, and the results of both ranks.
slowest() {
  awk 'NF == 1 { since = $1; next } $2 - since > most { most = $2 - since } END { print most }' "$@"
}
kill_lanes() {
  local rank ends=()
  start kills "a b" "RING_ROUNDS=$kills" || return 0
  brief=1
  for ((round = 0; round < kills; ++round)); do
    for rank in 0 1; do
      await test -e "$scratch/kills/running.$rank.$round" ||
        { fail "kills: round $round" "$scratch"/kills/*.log; return 0; }
    done
    now >"$scratch/kills/since.$round"
    kill_one_lane
    if ((round == 0)) && ! patience=5 await test -e "$scratch/kills/result.0.0"; then
      echo "SKIPPED: kills: this kernel's ss kills no socket"
      kill -KILL "${pid[kills.0]}" "${pid[kills.1]}"
      return 0
    fi
    for rank in 0 1; do
      ended kills "$rank" error "WARN.*lane [0-9] of 3" && warnings kills "$rank" 1
    done
    ((failures == 0)) || break
    ends+=("$scratch"/kills/{since,result.[01]}."$round")
  done
  finish kills 0 1
  echo "ok: kills: $round lanes, known to both after $(slowest "${ends[@]}") s at the latest"
}

netns_case
