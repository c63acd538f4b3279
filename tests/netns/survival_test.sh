#!/bin/bash
# survival_test: a peer that is there is never taken for dead, however long it does nothing. Every byte is checked.
#
# What is waited for by the clock here is that nothing happens for several timeouts: they are the kernel's, and no fake
# clock moves them. Only the plugin's own clocks are moved.
#
# environment: TCPX_TEST_LONG=1  a window closed for four minutes, a cable out for 10 s, every engine under every loss
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
long=$((${TCPX_TEST_LONG:-0} == 1))
netns_enter_each "$0" stopped "mute 0" "mute 2" "out_and_in AF_INET" "out_and_in AF_INET6" idle tiny lossy

netns_pair eth0 10.1.0.

# Stopped for several timeouts: its kernel goes on answering. The wait is described once, and once more for each verdict
# that differs from the one before. On a busy machine the rank that goes on takes its time to use up what the other's
# kernel holds and takes, and the wait begins no earlier.
stopped() {
  local pattern described warns='^WARN.*no progress for [0-9.]+ s; verdict: process-stopped'
  start stopped "a b" TCPX_PEER_TIMEOUT=1 TCPX_STALL_WARN=1 || return 0
  kill -STOP "${pid[stopped.1]}"
  says stopped 0 "$warns"
  sleep 3
  kill -CONT "${pid[stopped.1]}"
  unharmed stopped
  # Its kernel may take some more in between; a stall after that is another wait.
  pattern='.*comm 2a \([a-z]*\) .*no progress for [0-9.]* s; \(verdict: \)*\([a-z-]*\).*: \(message [0-9]*, [0-9]* of\).*'
  described=$(sed -n "s/$pattern/\1 \3 \4/p" "$scratch/stopped/log.0.0" | sort -s -k 1,1)
  [[ -n $described && -z $(uniq -d <<<"$described") ]] ||
    fail "stopped: described, each once: $described" "$scratch/stopped/log.0.0"
}

# A closed window for several timeouts, with and without a pool; once with a clock that finds an hour gone by.
mute() {
  local name="mute $1"
  start "$name" "a b" TCPX_PEER_TIMEOUT=1 "TCPX_THREADS=$1" 1:RING_MUTE=1 "0:RING_SHIFT=$(($1 * 1800))" || return 0
  sleep 2
  touch "$scratch/$name/shift"
  sleep 2
  if ((long)); then
    # For minutes, with the timeout that users have.
    start "mute long $1" "a b" "TCPX_THREADS=$1" 1:RING_MUTE=1 && {
      sleep 240
      speaks_at_last "mute long $1"
    }
  fi
  speaks_at_last "$name"
}
speaks_at_last() {
  [[ ! -e "$scratch/$1/result.0.0" ]] || fail "$1: ended"
  touch "$scratch/$1/speak"
  unharmed "$1"
}

# A cable that comes back within the timeout; with IPv6 the addresses have to stay.
backs_off() { [[ $(netns_run a ss -tinHO) =~ backoff:[2-9] ]]; }
out_and_in() {
  netns_address a eth0 fd00:1::1
  netns_address b eth0 fd00:1::2
  start "out and in $1" "a b" TCPX_PEER_TIMEOUT=30 "NCCL_SOCKET_FAMILY=$1" || return 0
  [[ -z $(netns_flows a src '[fd00:1::]/64') || $1 == AF_INET6 ]] || fail "out and in: IPv6 where IPv4 was asked for"
  netns_cut a eth0
  if ((long)); then sleep 10; else await backs_off || fail "out and in: no socket backs off"; fi
  netns_mend a eth0
  unharmed "out and in $1"
  [[ $(ip -n a -6 address show dev eth0) == *fd00:1::1* ]] || fail "out and in: the address has gone"
}

# Nothing to do for several timeouts, and for an hour of the clock; then there is.
idle() {
  local rank
  start idle "a b" TCPX_PEER_TIMEOUT=1 RING_QUIET=1 RING_SHIFT=3600 || return 0
  sleep 2
  touch "$scratch/idle/shift"
  sleep 2
  [[ ! -e $scratch/idle/result.0.0 && ! -e $scratch/idle/result.1.0 ]] || fail "idle: ended"
  touch "$scratch/idle/speak"
  unharmed idle
  for rank in 0 1; do
    (($(awk '{ print $3 }' "$scratch/idle/result.$rank.0") > 0)) || fail "idle: rank $rank received nothing afterwards"
  done
}

# The smallest buffers that the kernel gives: a few KB move each time that an acknowledgement is put off. Small
# messages; those above 4 KiB are bulk all the same.
tiny() {
  local threads
  for threads in 0 2; do
    start "tiny $threads" "a b" "TCPX_THREADS=$threads" RING_VARY=1 RING_SMALL=1 TCPX_EXPRESS_BYTES=4K \
      NCCL_SOCKET_SNDBUF=1 NCCL_SOCKET_RCVBUF=1 || continue
    unharmed "tiny $threads"
  done
}

# One packet in a thousand, in a hundred, in twenty gets lost.
lossy() {
  local per_mille host mode name modes
  modes=("TCPX_THREADS=0" "TCPX_THREADS=2 TCPX_ENGINE=io_uring" "TCPX_THREADS=2 TCPX_ENGINE=epoll")
  for per_mille in 1 10 50; do
    for host in a b; do
      netns_lose "$host" "$per_mille" meta l4proto tcp
      netns_count "$host" in "lossy_$per_mille" meta l4proto tcp
    done
    for mode in "${modes[@]:0:long ? 3 : 1}"; do
      name="lossy $per_mille ${mode//[^a-z0-9]/}"
      # shellcheck disable=SC2086
      start "$name" "a b" TCPX_PEER_TIMEOUT=10 RING_VARY=1 $mode || continue
      # Twenty packets lost at each end, at least.
      for host in a b; do
        await came "$host" "lossy_$per_mille" $((20000 / per_mille)) || fail "$name: too few packets"
      done
      unharmed "$name"
    done
    modes=("${modes[@]:1}" "${modes[0]}")
    for host in a b; do netns_heal "$host"; done
  done
}
came() { (($(netns_packets "$1" "$2") > $3)); }

netns_case
