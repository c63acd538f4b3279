#!/bin/bash
# survival_test: a peer that is there is never taken for dead, however long it does nothing. Every byte is checked.
set -euo pipefail
source tests/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"

# survived NAME: more messages flow, then both stop in order without a warning.
survived() {
  local name=$1
  sleep 0.5
  finish "$name" 0 1
  for rank in 0 1; do ended "$name" "$rank" stopped "" && warnings "$name" "$rank" 0; done
}

hosts

# Stopped for several timeouts: its kernel goes on answering. The wait is described once.
start stopped "a b" TCPX_PEER_TIMEOUT=1 TCPX_STALL_WARN=1 && {
  kill -STOP "${pid[stopped.1]}"
  sleep 4
  kill -CONT "${pid[stopped.1]}"
  survived stopped
  told=$(grep -c 'no progress for' "$scratch/stopped/log.0.0" || true)
  # One for each of the connection's two ends at most.
  ((told >= 1 && told <= 2)) || { cat "$scratch/stopped/log.0.0"; fail "stopped: the stall was described $told times"; }
}

# A closed window for several timeouts, with and without a pool.
for threads in 0 2; do
  start "mute $threads" "a b" TCPX_PEER_TIMEOUT=1 "TCPX_THREADS=$threads" 1:RING_MUTE=1 || continue
  sleep 5
  [[ ! -e "$scratch/mute $threads/result.0.0" ]] || fail "mute: ended"
  touch "$scratch/mute $threads/speak"
  survived "mute $threads"
done

# A cable that comes back within the timeout.
start "out and in" "a b" TCPX_PEER_TIMEOUT=20 && {
  netns_cut a eth0
  sleep 2
  netns_mend a eth0
  sleep 3
  survived "out and in"
}

# Nothing to do for several timeouts.
start idle "a b" TCPX_PEER_TIMEOUT=1 RING_QUIET=1 && {
  sleep 4
  survived idle
}

# One packet in a hundred gets lost.
netns_lose a 10 meta l4proto tcp
netns_lose b 10 meta l4proto tcp
start lossy "a b" TCPX_PEER_TIMEOUT=2 && {
  sleep 4
  survived lossy
}

exit $((failures > 0))
