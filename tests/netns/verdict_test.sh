#!/bin/bash
# verdict_test: faults are put into rings of four hosts, and the log of each rank that sees something names the culprit
# and the cause.
#
# Each rank sends on only what it has received, as in a collective, so that one fault stops all.
#
# environment: TCPX_TEST_LONG=1  all faults; without it three
#              VERDICT_ONLY=REGEX  those whose name matches
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_require ss nft
netns_enter "$0" "$@"
long=$((${TCPX_TEST_LONG:-0} == 1))
only=${VERDICT_ONLY:-.}
ring="h0 h1 h2 h3"
right=0 asked=0

# Four hosts on a switch.
hosts() {
  netns_add s h0 h1 h2 h3
  ip -n s link add br0 type bridge
  ip -n s link set br0 up
  local i
  for i in 0 1 2 3; do
    netns_link "h$i" eth0 s "to$i"
    ip -n s link set "to$i" master br0
    netns_address "h$i" eth0 "10.1.0.1$i/24"
  done
}

# begin NAME ENVIRONMENT...: a ring; false: this fault is not asked for.
begin() {
  [[ $1 =~ $only ]] || return 1
  asked=$((asked + 1))
  local own=() rank
  for rank in 0 1 2 3; do own+=("$rank:RANK=$rank"); done
  start "$1" "$ring" RING_CHAIN=1 TCPX_STALL_WARN=2 TCPX_PEER_TIMEOUT=120 TCPX_HEAL=0 "${own[@]}" "${@:2}"
}

# names NAME RANK REGEX: waits until the rank's latest verdict matches.
names() {
  local file="$scratch/$1/verdict.$2.0" end=$((SECONDS + patience)) first latest
  while true; do
    latest=$(grep -h 'verdict: ' "$file" 2>/dev/null | tail -n 1) || true
    [[ ! $latest =~ $3 ]] || break
    if ((SECONDS >= end)); then
      cat "$file" "$scratch/$1/log.$2.0" 2>/dev/null || true
      fail "$1: rank $2 says \"$latest\", wanted /$3/"
      return 1
    fi
    sleep 0.1
  done
  first=$(grep -h 'verdict: ' "$file" | head -n 1)
  [[ $first =~ $3 ]] || echo "note: $1: rank $2 said first: ${first#*verdict: }"
  echo "ok: $1: rank $2: ${latest#*verdict: }"
}

# all NAME REGEX RANK...: each of them.
all() {
  local rank failed=0
  for rank in "${@:3}"; do names "$1" "$rank" "$2" || failed=1; done
  ((failed == 1)) || right=$((right + 1))
}

hosts

begin stopped && {
  kill -STOP "${pid[stopped.0]}"
  all stopped 'process-stopped: .*waits for [^:]*rank 0[^:]*: its process is stopped' 1 2 3
  kill -CONT "${pid[stopped.0]}"
  finish stopped 0 1 2 3
}

begin mute 1:RING_HUSH=receive && {
  touch "$scratch/mute/hush"
  all mute 'peer-late: .*waits for [^:]*rank 1[^:]*: ' 0 2 3
  touch "$scratch/mute/speak"
  finish mute 0 1 2 3
}

begin quiet 2:RING_HUSH=send && {
  touch "$scratch/quiet/hush"
  all quiet 'peer-late: .*rank 2[^:]*: ' 0 1 3
  touch "$scratch/quiet/speak"
  finish quiet 0 1 2 3
}

echo "$right of $asked named right"
exit $((failures > 0 || right < asked))
