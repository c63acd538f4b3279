#!/bin/bash
# arp_flux_test: a running job outlives that ARP flux begins: of two interfaces in one subnet, without sysctls, the
# one's address is suddenly answered with the other one's hardware address, as after an entry's age in any ARP cache.
#
# Every message is checked by ring_rank, and none may be missing at the end.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter_each "$0" "flux alone" "flux eth1+eth2 TCPX_FUSE=eth1+eth2"
interface=eth

netns_switch s
netns_add a b
for host in a b; do
  netns_sysctls "$host" rp_filter=2
  for i in 1 2; do netns_plug "$host" "eth$i" s "10.0.0.$([[ $host == a ]] && echo 1 || echo 2)$i"; done
done

hardware() { ip -n "$1" -o link show "$2" | sed 's/.*link.ether \([^ ]*\) .*/\1/'; }

# answers HOST PEER TENS SWAP: what HOST believes of PEER's two addresses; with SWAP each is the other interface's.
answers() {
  local i device
  for i in 1 2; do
    for device in eth1 eth2; do
      ip -n "$1" neigh replace "10.0.0.$3$i" lladdr "$(hardware "$2" "eth$(($4 ? 3 - i : i))")" dev "$device" \
        nud permanent
    done
  done
}

swapped() { (($(netns_packets a swapped) > 0)); }

# flux DEVICES ENVIRONMENT...
flux() {
  local name="flux $1"
  answers a b 2 0
  answers b a 1 0
  start "$name" "a b" NCCL_SOCKET_FAMILY=AF_INET TCPX_PEER_TIMEOUT=1 "${@:2}" || return 0
  netns_count a in swapped iifname eth2 ip daddr 10.0.0.11 meta l4proto tcp
  answers a b 2 1
  answers b a 1 1
  await swapped || fail "$name: nothing came in by the other interface"
  # Twice the time after which a lane without an answer fails: the kernel's, which no fake clock moves, and nothing
  # happens.
  sleep 2
  unharmed "$name" .
}

netns_case
