#!/bin/bash
# healing_middle_test: a router between two hosts resets their flows, forgets those that are idle, or swallows one. Every
# byte is checked, and nobody sees an error.
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"

netns_add a b r
net=1
for host in a b; do
  netns_link "$host" eth1 r "to_$host"
  netns_address "$host" eth1 "10.$net.0.1/24"
  netns_address r "to_$host" "10.$net.0.9/24"
  ip -n "$host" route add default via "10.$net.0.9"
  netns_shape "$host" eth1 20mbit
  net=2
done
netns_run r sysctl -qw net.ipv4.ip_forward=1
netns_nft r 'table inet middle { chain forward { type filter hook forward priority 0; }; }'
calm() { netns_nft r 'flush chain inet middle forward'; }

# healed NAME REGEX: more messages flow, then both stop in order without a warning.
healed() {
  local rank
  sleep 0.3
  finish "$1" 0 1
  for rank in 0 1; do ended "$1" "$rank" stopped "$2" && warnings "$1" "$rank" 0; done
}

# reset_all: every flow that stands is reset, at its next packet.
reset_all() {
  local mine theirs
  while read -r mine theirs; do
    for ports in "sport ${mine##*:} tcp dport ${theirs##*:}" "sport ${theirs##*:} tcp dport ${mine##*:}"; do
      netns_nft r "add rule inet middle forward tcp $ports reject with tcp reset"
    done
  done < <(netns_flows a)
}

# busy_flow: a flow that carries something; waits for one.
busy_flow() {
  local flow='' end=$((SECONDS + patience))
  while [[ -z $flow ]] && ((SECONDS < end)); do flow=$(lane_flow a); done
  echo "$flow"
}

# flow_gone LOCAL PEER: waits until a has it no more.
flow_gone() {
  local end=$((SECONDS + patience))
  while [[ -n $(netns_run a ss -tnH state established src "$1" dst "$2") ]]; do
    ((SECONDS < end)) || { fail "the flow $1 $2 stands"; return; }
    sleep 0.05
  done
}

interface=eth1
modes=(TCPX_THREADS=0 "TCPX_THREADS=2 TCPX_ENGINE=io_uring" "TCPX_THREADS=2 TCPX_ENGINE=epoll")
for mode in "${modes[@]}"; do
  # shellcheck disable=SC2086
  start "resets ${mode//[^a-z0-9]/}" "a b" TCPX_HEAL=1 $mode || continue
  for _ in 1 2 3; do
    flow=$(busy_flow)
    reset_all
    # shellcheck disable=SC2086
    flow_gone $flow
    calm
    sleep 0.5
  done
  healed "resets ${mode//[^a-z0-9]/}" 'lane [0-9] .* is lost and will be resumed'

  # One flow is dropped for good, both ways: another source port gets through.
  # shellcheck disable=SC2086
  start "swallowed ${mode//[^a-z0-9]/}" "a b" TCPX_HEAL=1 $mode || continue
  flow=$(busy_flow)
  read -r mine theirs <<<"$flow"
  netns_nft r "add rule inet middle forward tcp sport ${mine##*:} tcp dport ${theirs##*:} drop"
  netns_nft r "add rule inet middle forward tcp sport ${theirs##*:} tcp dport ${mine##*:} drop"
  # shellcheck disable=SC2086
  flow_gone $flow
  healed "swallowed ${mode//[^a-z0-9]/}" 'lane [0-9] goes on'
  calm
done

# Flows that were idle for a second are forgotten, and what comes of them is dropped.
netns_nft r 'add rule inet middle forward ct state invalid drop'
if netns_run r sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=1 \
  net.netfilter.nf_conntrack_tcp_loose=0 2>/dev/null; then
  start forgotten "a b" TCPX_HEAL=1 RING_QUIET=1 && {
    sleep 3
    touch "$scratch/forgotten/speak"
    sleep 3
    healed forgotten 'lane [0-9] goes on'
    for rank in 0 1; do
      (($(awk '{ print $3 }' "$scratch/forgotten/result.$rank.0") > 0)) || fail "forgotten: rank $rank received nothing"
    done
  }
fi

exit $((failures > 0))
