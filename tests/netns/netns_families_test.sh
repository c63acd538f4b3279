#!/bin/bash
# netns_families_test: ranks whose interfaces have addresses of IPv4, IPv6 or both, through the real plugin.
#
# Every byte is checked by peer; here, by counters, that all of it went by the family that had to serve.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/peers.sh
netns_enter "$0" "$@"

# counted: what each host sends by TCP is counted by family.
counted() {
  local host
  for host in a b; do
    netns_sysctls "$host" rp_filter=2
    netns_count "$host" out v4 oifname != lo meta nfproto ipv4 meta l4proto tcp
    netns_count "$host" out v6 oifname != lo meta nfproto ipv6 meta l4proto tcp
  done
}

# ranks NAME ENVIRONMENT...
ranks() { peers "$1" NCCL_SOCKET_IFNAME=eth TCPX_LANES=3 TCPX_THREADS=0 "${@:2}"; }

# run NAME WAY ENVIRONMENT...: WAY is the families of the packets: v4, v6 or "v4 v6".
run() {
  local name=$1 way=$2 host family seen
  local -A before=()
  shift 2
  for host in a b; do for family in v4 v6; do before[$host$family]=$(netns_packets "$host" "$family"); done; done
  ranks "$name" "$@" || { fail "$name"; return; }
  for host in a b; do
    for family in v4 v6; do
      seen=$(($(netns_packets "$host" "$family") - ${before[$host$family]}))
      if [[ " $way " == *" $family "* ]]; then
        ((seen > 0)) || fail "$name: $host sent nothing by $family" "$scratch/$name/a.log"
      else
        ((seen == 0)) || fail "$name: $host sent $seen packets by $family" "$scratch/$name/a.log"
      fi
    done
  done
  echo "ok: $name"
}

netns_pair eth1 10.0.1. fd00:1::
counted
run both v4
logged both a 'device 0: eth1 10[.]0[.]1[.]1 and fd00:1::1,'
logged both a 'device 0: listens on \[fd00:1::1\]:'
# The first addresses are of different families: each side takes of the other's what it has.
run one-wants-v6 v6 "a:$v6"
run one-wants-v4 v4 "b:$v4"
run both-want-v6 v6 "$v6"
! grep 'listens on 10[.]' "$scratch/both-want-v6/a.log" || fail "both-want-v6: listens on IPv4 all the same"
# The path drops one family, though the hosts have it.
for host in a b; do netns_drop "$host" meta nfproto ipv4 meta l4proto tcp; done
run v4-swallowed 'v4 v6' PEER_WARNS=1
logged v4-swallowed a 'send device 0: 3 lanes, \[fd00:1::1\]:[0-9]+ to \[fd00:1::2\]:'
netns_unplug

# One has both, the other one IPv6 only.
netns_pair eth1
netns_address a eth1 10.0.1.1 fd00:1::1
netns_address b eth1 fd00:1::2
counted
run v6-only v6
# They have none in common, and b has no route to a's: it says so at once.
b_is_refused nothing-common 'connect to 10[.]0[.]1[.]1:[0-9]+ through eth1 [(]fd00:1::2[)]: connect: Network is unreachable.*the peer listens by IPv4 alone and eth1 here is used by IPv6 alone.*NCCL_SOCKET_FAMILY' \
  NCCL_SOCKET_IFNAME=eth TCPX_LANES=3 TCPX_THREADS=0 "a:$v4"
netns_unplug

# The device has IPv6 only, and another interface leads to the peer's IPv4: as NCCL's sockets, by the routes.
netns_pair eth1 10.0.1.
netns_pair eth2 fd00:2::
counted
run by-another-interface 'v4 v6' b:NCCL_SOCKET_IFNAME=eth2 a:NCCL_SOCKET_IFNAME=eth1
logged by-another-interface b 'lanes through eth2 [(]fd00:2::2[)] are not bound, for it has no address of that family'
netns_unplug

# Fused: the peer has one family, on each interface.
for i in 1 2; do
  netns_pair "eth$i" "fd00:$i::"
  netns_address a "eth$i" "10.0.$i.1"
done
counted
run fused v6 TCPX_FUSE=eth1+eth2 TCPX_LANES=5
logged fused a ', 2: eth2 fd00:2::1 to fd00:2::2'
logged fused b ', 2: eth2 fd00:2::2 to fd00:2::1'
netns_unplug

# Fused, and the first addresses of the members are of different families: all have IPv6.
netns_pair eth1 10.0.1. fd00:1::
netns_pair eth2 fd00:2::
counted
run mixed-fused v6 TCPX_FUSE=eth1+eth2 TCPX_LANES=5
logged mixed-fused a 'device 0: eth1[+]eth2, '
logged mixed-fused a ', 2: eth2 fd00:2::1 to fd00:2::2'
netns_end
