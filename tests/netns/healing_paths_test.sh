#!/bin/bash
# healing_paths_test: interfaces of a fused device go and come, here or at the peer alone. Lanes move to what is left
#                     and
# return to their own path; every byte is checked, and nobody sees an error.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter_each "$0" "cable caller TCPX_THREADS=0" "cable io_uring TCPX_THREADS=2 TCPX_ENGINE=io_uring" \
  "cable epoll TCPX_THREADS=2 TCPX_ENGINE=epoll" address behind_switch one_cable no_netlink

# lanes_by HOST NET COUNT: waits until so many flows go by that network, not the first one, which has the health
# sockets.
lanes_by() {
  await has_lanes_by "$@" || {
    fail "host $1: $(netns_flows "$1" src "10.$2.0.0/24" | wc -l) lanes by network $2, not $3"
    netns_run "$1" ss -tnoi
  }
}
has_lanes_by() { (($(netns_flows "$1" src "10.$2.0.0/24" | wc -l) == $3)); }

everywhere() {
  lanes_by a "$1" "$2"
  lanes_by b "$1" "$2"
}

# Two cables, and a third network by a switch, so that the other side's end is not seen here.
for i in 1 2; do netns_pair "eth$i" "10.$i.0."; done
netns_switch s
netns_plug a eth3 s 10.3.0.1
netns_plug b eth3 s 10.3.0.2
# Far slower than the hosts, so that every lane is busy: one that has nothing to do is never silent.
for i in 1 2 3; do
  for host in a b; do netns_shape "$host" "eth$i" 20mbit; done
done

two_cables() {
  interface=eth1,eth2 start "$1" "a b" TCPX_HEAL=1 TCPX_FUSE=eth1+eth2 "${@:2}"
}

# A cable out, and in again: the kernel says so at both ends.
cable() {
  two_cables "cable $1" "${@:2}" || return 0
  everywhere 2 2
  for _ in 1 2; do
    netns_cut a eth2
    everywhere 2 0
    netns_mend a eth2
    everywhere 2 2
  done
  unharmed "cable $1" 'lane 2 goes on, 10[.]1[.]0[.]'
}

# An address that is taken away, and comes back.
address() {
  two_cables address || return 0
  ip -n a address del 10.2.0.1/24 dev eth2
  everywhere 2 0
  netns_address a eth2 10.2.0.1
  everywhere 2 2
  unharmed address 'lane 2 goes on, 10[.]1[.]0[.]'
}

# Only the peer's interface is out: nothing but silence tells it here, and nothing tells that it is back.
behind_switch() {
  interface=eth1,eth3 start behind-switch "a b" TCPX_HEAL=1 TCPX_FUSE=eth1+eth3 || return 0
  everywhere 3 2
  netns_cut b eth3
  lanes_by b 3 0
  lanes_by a 3 0
  netns_mend b eth3
  everywhere 3 2
  unharmed behind-switch 'lane 2 .* is let go .*it returns to its own path'
}

# With one interface there is no other path: the lanes wait for it.
backs_off() { [[ $(netns_run a ss -tinHO) =~ backoff:[2-9] ]]; }
one_cable() {
  interface=eth2 start one-cable "a b" TCPX_HEAL=1 TCPX_PEER_TIMEOUT=60 || return 0
  netns_cut b eth2
  await backs_off || fail "one-cable: no socket backs off"
  netns_mend b eth2
  unharmed one-cable
}

# A kernel that tells nothing of its interfaces: silence does.
no_netlink() {
  two_cables no-netlink RING_UNTOLD=1 || return 0
  netns_cut b eth2
  everywhere 2 0
  netns_mend b eth2
  everywhere 2 2
  unharmed no-netlink 'does not report changes of interfaces'
}

netns_case
