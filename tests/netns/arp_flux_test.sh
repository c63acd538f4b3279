#!/bin/bash
# arp_flux_test: a running job outlives that ARP flux begins: of two interfaces in one subnet, without sysctls, the one's
# address is suddenly answered with the other one's hardware address, as after an entry's age in any ARP cache.
#
# Every message is checked by ring_rank, and none may be missing at the end.
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"
export interface=eth

netns_add a b s
ip -n s link add bridge type bridge
ip -n s link set bridge up
port=0
for ns in a b; do
  netns_run "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.default.rp_filter=2
  for i in 1 2; do
    netns_link "$ns" "eth$i" s "port$((++port))"
    ip -n s link set "port$port" master bridge
    netns_address "$ns" "eth$i" "10.0.0.$([[ $ns == a ]] && echo 1 || echo 2)$i/24"
  done
done

hardware() { ip -n "$1" -o link show "$2" | sed 's/.*link.ether \([^ ]*\) .*/\1/'; }

# answers HOST PEER TENS SWAP: what HOST believes of PEER's two addresses; with SWAP each is the other interface's.
answers() {
  local i device
  for i in 1 2; do
    for device in eth1 eth2; do
      ip -n "$1" neigh replace "10.0.0.$3$i" lladdr "$(hardware "$2" "eth$(($4 ? 3 - i : i))")" dev "$device" nud permanent
    done
  done
}

for fuse in '' eth1+eth2; do
  name="flux ${fuse:-alone}"
  answers a b 2 0
  answers b a 1 0
  start "$name" "a b" NCCL_SOCKET_FAMILY=AF_INET TCPX_PEER_TIMEOUT=2 "TCPX_FUSE=$fuse" || continue
  netns_count a in swapped iifname eth2 ip daddr 10.0.0.11 meta l4proto tcp
  answers a b 2 1
  answers b a 1 1
  sleep 4  # twice the time after which a lane without an answer fails
  swapped=$(netns_packets a swapped)
  finish "$name" 0 1
  for rank in 0 1; do ended "$name" "$rank" stopped . || true; done
  ((swapped > 0)) || fail "$name: nothing came in by the other interface"
  netns_heal a
done

exit $((failures > 0))
