#!/bin/bash
# healing_middle_test: a router between two hosts resets their flows, forgets those that are idle, or swallows one.
#                      Every
# byte is checked, and nobody sees an error.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter_each "$0" "middle caller TCPX_THREADS=0" "middle io_uring TCPX_THREADS=2 TCPX_ENGINE=io_uring" \
  "middle epoll TCPX_THREADS=2 TCPX_ENGINE=epoll" forgotten
interface=eth1

netns_add a b
netns_router r
netns_table r
netns_to_router a eth1 r 10.1.0.
netns_to_router b eth1 r 10.2.0.
for host in a b; do netns_shape "$host" eth1 20mbit; done

# middle MODE ENVIRONMENT...
middle() {
  local name="resets $1"
  # Every open flow is reset, at its next packet, three times.
  start "$name" "a b" TCPX_HEAL=1 "${@:2}" && {
    for _ in 1 2 3; do
      busy_flow a
      netns_break 'reject with tcp reset' "$(netns_flows a)" r
      flow_gone a "$flow"
      netns_calm r
      more "$name" 0 1
    done
    unharmed "$name" 'lane [0-9] .* is lost and will be resumed'
  }

  # One flow is dropped for good, both ways: another source port gets through.
  start "swallowed $1" "a b" TCPX_HEAL=1 "${@:2}" || return 0
  busy_flow a
  netns_break drop "$flow" r
  flow_gone a "$flow"
  unharmed "swallowed $1" 'lane [0-9] goes on'
}

# Flows that were idle for a second are forgotten, and what comes of them is dropped.
forgotten() {
  local rank
  netns_nft r 'add rule inet netns passing ct state invalid drop'
  netns_run r sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=1 net.netfilter.nf_conntrack_tcp_loose=0 \
    2>/dev/null || netns_skip "forgotten: no connection tracking in this kernel"
  start forgotten "a b" TCPX_HEAL=1 RING_QUIET=1 || return 0
  # The kernel tells nobody when it has forgotten.
  sleep 2
  touch "$scratch/forgotten/speak"
  says forgotten 0 'lane [0-9] goes on'
  says forgotten 1 'lane [0-9] goes on'
  unharmed forgotten 'lane [0-9] goes on'
  for rank in 0 1; do
    (($(awk '{ print $3 }' "$scratch/forgotten/result.$rank.0") > 0)) || fail "forgotten: rank $rank received nothing"
  done
}

netns_case
