#!/bin/bash
# survival_test: a peer that is there is never taken for dead, however long it does nothing. Every byte is checked.
#
# environment: TCPX_TEST_LONG=1  a window closed for four minutes, a cable out for 10 s, every engine under every loss
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"
long=$((${TCPX_TEST_LONG:-0} == 1))

# survived NAME: more messages flow, then both stop in order without a warning.
survived() {
  local name=$1
  sleep 0.5
  finish "$name" 0 1
  for rank in 0 1; do ended "$name" "$rank" stopped "" && warnings "$name" "$rank" 0; done
}

hosts

# Stopped for several timeouts: its kernel goes on answering. The wait is described once, and once more for each verdict
# that differs from the one before. On a busy machine the rank that goes on takes its time to use up what the other's
# kernel holds and takes, and the wait begins no earlier.
start stopped "a b" TCPX_PEER_TIMEOUT=1 TCPX_STALL_WARN=1 && {
  kill -STOP "${pid[stopped.1]}"
  sleep 4
  await "$scratch/stopped/stalled.0.0" || fail "stopped: the wait is not described"
  kill -CONT "${pid[stopped.1]}"
  survived stopped
  # Its kernel may take some more in between; what stands still then is another wait.
  pattern='.*comm 2a \([a-z]*\) .*no progress for [0-9.]* s; \(verdict: \)*\([a-z-]*\).*: \(message [0-9]*, [0-9]* of\).*'
  described=$(sed -n "s/$pattern/\1 \3 \4/p" "$scratch/stopped/log.0.0" | sort -s -k 1,1)
  [[ -n $described && -z $(uniq -d <<<"$described") ]] || {
    cat "$scratch/stopped/log.0.0"
    fail "stopped: described, each once: $described"
  }
}

# A closed window for several timeouts, with and without a pool; once with a clock that finds an hour gone by.
for threads in 0 2; do
  start "mute $threads" "a b" TCPX_PEER_TIMEOUT=1 "TCPX_THREADS=$threads" 1:RING_MUTE=1 "0:RING_SHIFT=$((threads * 1800))" ||
    continue
  sleep 2
  touch "$scratch/mute $threads/shift"
  sleep 3
  [[ ! -e "$scratch/mute $threads/result.0.0" ]] || fail "mute: ended"
  touch "$scratch/mute $threads/speak"
  survived "mute $threads"
done

# For minutes, with the timeout that users have.
if ((long)); then
  for threads in 0 2; do start "mute long $threads" "a b" "TCPX_THREADS=$threads" 1:RING_MUTE=1 || true; done
  sleep 240
  for threads in 0 2; do
    [[ ! -e "$scratch/mute long $threads/result.0.0" ]] || fail "mute long: ended"
    touch "$scratch/mute long $threads/speak"
    survived "mute long $threads"
  done
fi

# A cable that comes back within the timeout; with IPv6 the addresses have to stay.
netns_address a eth0 fd00:1::1/64
netns_address b eth0 fd00:1::2/64
for family in AF_INET AF_INET6; do
  start "out and in $family" "a b" TCPX_PEER_TIMEOUT=30 "NCCL_SOCKET_FAMILY=$family" || continue
  [[ $(netns_run a ss -tnH state established | grep -c 'fd00:1::') == 0 ]] || [[ $family == AF_INET6 ]] ||
    fail "out and in: IPv6 where IPv4 was asked for"
  netns_cut a eth0
  sleep $((long ? 10 : 2))
  netns_mend a eth0
  sleep $((long ? 15 : 3))
  [[ $(ip -n a -6 address show dev eth0) == *fd00:1::1* ]] || fail "out and in: the address has gone"
  survived "out and in $family"
done

# Nothing to do for several timeouts, and for an hour of the clock; then there is.
start idle "a b" TCPX_PEER_TIMEOUT=1 RING_QUIET=1 RING_SHIFT=3600 && {
  sleep 2
  touch "$scratch/idle/shift"
  sleep 2
  [[ ! -e $scratch/idle/result.0.0 && ! -e $scratch/idle/result.1.0 ]] || fail "idle: ended"
  touch "$scratch/idle/speak"
  survived idle
  for rank in 0 1; do
    (($(awk '{ print $3 }' "$scratch/idle/result.$rank.0") > 0)) || fail "idle: rank $rank received nothing afterwards"
  done
}

# The smallest buffers that the kernel gives.
for threads in 0 2; do
  start "tiny $threads" "a b" "TCPX_THREADS=$threads" NCCL_SOCKET_SNDBUF=1 NCCL_SOCKET_RCVBUF=1 RING_VARY=1 || continue
  sleep 1
  survived "tiny $threads"
done

# One packet in a thousand, in a hundred, in twenty gets lost.
modes=("TCPX_THREADS=0" "TCPX_THREADS=2 TCPX_ENGINE=io_uring" "TCPX_THREADS=2 TCPX_ENGINE=epoll")
for per_mille in 1 10 50; do
  for host in a b; do netns_lose "$host" "$per_mille" meta l4proto tcp; done
  for mode in "${modes[@]:0:long ? 3 : 1}"; do
    # shellcheck disable=SC2086
    start "lossy $per_mille ${mode//[^a-z0-9]/}" "a b" TCPX_PEER_TIMEOUT=10 RING_VARY=1 $mode || continue
    sleep $((long ? 20 : 3))
    survived "lossy $per_mille ${mode//[^a-z0-9]/}"
  done
  modes=("${modes[@]:1}" "${modes[0]}")
  for host in a b; do netns_heal "$host"; done
done

exit $((failures > 0))
