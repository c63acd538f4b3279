#!/bin/bash
# failure_test: what ends a connection ends it on both sides, soon, and says what it was.
#
# A peer that is killed or reset is known at once, one that falls silent within TCPX_PEER_TIMEOUT, by unacknowledged bytes
# on a busy lane and by the health socket on an idle one.
#
# environment: NETNS_SS_KILLS (100)  lanes to kill under load
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"
kills=${NETNS_SS_KILLS:-100}
export TCPX_HEAL=0  # what is an end without healing; with it see healing_paths_test, healing_middle_test
both=(0 1)
network='10\.1\.0\.[12]:[0-9]+'
# What a warning has to tell, whatever it was.
full="^WARN .*comm 2a (send|receive) device 0 (lane [0-9] of|all) 3.*$network to $network, connection [0-9a-f]{8}: .*in flight: (message|nothing).*rtt [0-9.]+ ms, [0-9]+ retransmissions, last acknowledgement [0-9.]+ s ago"

hosts

# Each way of moving bytes meets a kill.
for mode in TCPX_THREADS=0 "TCPX_THREADS=2 TCPX_ENGINE=io_uring" "TCPX_THREADS=2 TCPX_ENGINE=epoll"; do
  name="killed ${mode//[^a-z0-9]/}"
  # shellcheck disable=SC2086
  start "$name" "a b" $mode || continue
  since=$(now)
  kill -KILL "${pid[$name.1]}"
  ended "$name" 0 error "$full" && warnings "$name" 0 1
  ended "$name" 0 error "10\.1\.0\.2:" || true
  finish "$name" 0
done

# A child that lives must not keep a dead rank's sockets open.
start forked "a b" 1:RING_FORK=1 && {
  since=$(now)
  kill -KILL "${pid[forked.1]}"
  ended forked 0 error "$full" || true
  finish forked 0
}

# Somebody on the way resets one lane.
start reset "a b" && {
  read -r local peer <<<"$(lane_flow a)"
  since=$(now)
  netns_table a
  if netns_nft a "add rule inet netns losses tcp dport ${local##*:} tcp sport ${peer##*:} reject with tcp reset"; then
    for rank in "${both[@]}"; do ended reset "$rank" error "$full" && warnings reset "$rank" 1; done
    grep -qE "WARN.*lane [0-9] of 3.*(reset|Broken pipe)" "$scratch"/reset/log.* || fail "reset: nobody names the lane"
  else
    echo "SKIPPED: reset: this kernel's nft rejects nothing"
  fi
  finish reset 0 1
  netns_heal a
}

# One side of one lane ends: three that are sent on, three that are received on.
for ((lane = 0; lane < 6; ++lane)); do
  name="half closed $lane"
  since=$(now)
  start "$name" "a b" "0:RING_SHUT=$lane" "TCPX_THREADS=$((lane % 2 * 2))" || continue
  for rank in "${both[@]}"; do ended "$name" "$rank" error "$full" && warnings "$name" "$rank" 1; done
  finish "$name" 0 1
done

# The network swallows one lane; the health socket and the other lanes live.
start swallowed "a b" TCPX_PEER_TIMEOUT=2 && {
  read -r local peer <<<"$(lane_flow a)"
  since=$(now)
  netns_table a
  netns_nft a "add rule inet netns losses tcp dport ${local##*:} tcp sport ${peer##*:} drop"
  netns_table b
  netns_nft b "add rule inet netns losses tcp sport ${local##*:} tcp dport ${peer##*:} drop"
  for rank in "${both[@]}"; do ended swallowed "$rank" error "$full" && warnings swallowed "$rank" 1; done
  grep -qE "WARN.*lane [0-9] of 3.*nothing that was sent has been acknowledged" "$scratch"/swallowed/log.* ||
    fail "swallowed: nobody names the lane"
  finish swallowed 0 1
  netns_heal a
  netns_heal b
}

# Nothing passes any more, under load and on connections that only wait.
for load in busy idle; do
  start "dropped $load" "a b" TCPX_PEER_TIMEOUT=2 "RING_QUIET=$([[ $load == idle ]] && echo 1 || echo 0)" || continue
  since=$(now)
  for host in a b; do
    netns_table "$host"
    netns_nft "$host" "add rule inet netns losses drop"
  done
  for rank in "${both[@]}"; do ended "dropped $load" "$rank" error "$full" && warnings "dropped $load" "$rank" 1; done
  finish "dropped $load" 0 1
  netns_heal a
  netns_heal b
done

# The device of one host goes down for longer than the timeout.
start down "a b" TCPX_PEER_TIMEOUT=2 && {
  since=$(now)
  netns_cut a eth0
  for rank in "${both[@]}"; do ended down "$rank" error "$full" || true; done
  finish down 0 1
  netns_mend a eth0
  until [[ $(netns_run a ip link show eth0) == *"state UP"* ]]; do sleep 0.05; done
}

# Lanes are taken away under load, each time from fresh connections.
kill_one_lane() {
  local flow
  read -r -a flow <<<"$(lane_flow a)"
  netns_run a ss -KtnH src "${flow[0]}" dst "${flow[1]}" >/dev/null
}
slowest_of_round() {
  awk -v since="$since" -v most="$slowest" '{ after = $2 - since; if (after > most) most = after } END { print most }' \
    "$scratch"/kills/result.[01]."$round"
}
if start kills "a b" "RING_ROUNDS=$kills"; then
  brief=1 slowest=0
  for ((round = 0; round < kills; ++round)); do
    for rank in "${both[@]}"; do await "$scratch/kills/running.$rank.$round" || { fail "kills: round $round"; break 2; }; done
    since=$(now)
    kill_one_lane
    if ((round == 0)) && ! await "$scratch/kills/result.0.0" 5; then
      echo "SKIPPED: kills: this kernel's ss kills no socket"
      kill -KILL "${pid[kills.0]}" "${pid[kills.1]}"
      break
    fi
    for rank in "${both[@]}"; do
      ended kills "$rank" error "WARN.*lane [0-9] of 3" && warnings kills "$rank" 1
    done
    ((failures == 0)) || break
    slowest=$(slowest_of_round)
  done
  if [[ -e $scratch/kills/result.0.0 ]]; then
    finish kills 0 1
    echo "ok: kills: $round lanes, known to both after $slowest s at the latest"
  fi
  brief=0 round=0
fi

exit $((failures > 0))
