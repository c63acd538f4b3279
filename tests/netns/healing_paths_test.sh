#!/bin/bash
# healing_paths_test: interfaces of a fused device go and come, here or at the peer alone. Lanes move to what is left and
# return to their own path; every byte is checked, and nobody sees an error.
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"

# lanes_by HOST NET COUNT: waits until so many flows go by that network, not the first one, which has the health sockets.
lanes_by() {
  local end=$((SECONDS + patience)) count
  while true; do
    count=$(netns_run "$1" ss -tnH state established | awk -v net="10.$2.0." 'index($3, net) == 1' | wc -l)
    ((count != $3)) || return 0
    ((SECONDS < end)) || break
    sleep 0.05
  done
  fail "host $1: $count lanes by network $2, not $3"
  netns_run "$1" ss -tnoi
}

everywhere() {
  lanes_by a "$1" "$2"
  lanes_by b "$1" "$2"
}

# Two cables, and a third network by a switch, so that the other side's end is not seen here.
netns_add a b s
for i in 1 2; do
  netns_link a "eth$i" b "eth$i"
  netns_address a "eth$i" "10.$i.0.1/24"
  netns_address b "eth$i" "10.$i.0.2/24"
done
ip -n s link add br0 type bridge
ip -n s link set br0 up
for host in a b; do
  netns_link "$host" eth3 s "to_$host"
  ip -n s link set "to_$host" master br0
done
netns_address a eth3 10.3.0.1/24
netns_address b eth3 10.3.0.2/24
# Far slower than the hosts, so that every lane is busy: one that has nothing to do is never silent.
for i in 1 2 3; do
  for host in a b; do netns_shape "$host" "eth$i" 20mbit; done
done

# healed NAME: more messages flow, then both stop in order without a warning.
healed() {
  local rank
  sleep 0.3
  finish "$1" 0 1
  for rank in 0 1; do ended "$1" "$rank" stopped "${2:-}" && warnings "$1" "$rank" 0; done
}

two_cables() {
  interface=eth1,eth2 start "$1" "a b" TCPX_HEAL=1 TCPX_FUSE=eth1+eth2 "${@:2}"
}

# A cable out, and in again: the kernel says so at both ends.
for mode in TCPX_THREADS=0 "TCPX_THREADS=2 TCPX_ENGINE=io_uring" "TCPX_THREADS=2 TCPX_ENGINE=epoll"; do
  name="cable ${mode//[^a-z0-9_]/}"
  # shellcheck disable=SC2086
  two_cables "$name" $mode || continue
  everywhere 2 2
  for _ in 1 2; do
    netns_cut a eth2
    everywhere 2 0
    netns_mend a eth2
    everywhere 2 2
  done
  healed "$name" 'lane 2 goes on, 10[.]1[.]0[.]'
done

# An address that is taken away, and comes back.
two_cables address && {
  ip -n a address del 10.2.0.1/24 dev eth2
  everywhere 2 0
  ip -n a address add 10.2.0.1/24 dev eth2
  everywhere 2 2
  healed address 'lane 2 goes on, 10[.]1[.]0[.]'
}

# Only the peer's interface is out: nothing but silence tells it here, and nothing tells that it is back.
interface=eth1,eth3 start behind-switch "a b" TCPX_HEAL=1 TCPX_FUSE=eth1+eth3 && {
  everywhere 3 2
  netns_cut b eth3
  lanes_by b 3 0
  lanes_by a 3 0
  netns_mend b eth3
  everywhere 3 2
  healed behind-switch 'lane 2 .* is let go .*it returns to its own path'
}

# With one interface there is no other way: the lanes wait for it.
interface=eth2 start one-cable "a b" TCPX_HEAL=1 TCPX_PEER_TIMEOUT=60 && {
  netns_cut b eth2
  sleep 2
  netns_mend b eth2
  healed one-cable
}

# A kernel that tells nothing of its interfaces: silence does.
two_cables no-netlink RING_UNTOLD=1 && {
  netns_cut b eth2
  everywhere 2 0
  netns_mend b eth2
  everywhere 2 2
  healed no-netlink 'does not tell of interfaces that go and come'
}

exit $((failures > 0))
