#!/bin/bash
# netns_paths_test: wirings in which NCCL's own sockets work, through the real plugin: which socket is tied to a device,
# bound to an address or not bound at all, and what becomes of lanes that find no path.
#
# Every byte is checked by peer.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/peers.sh
netns_enter "$0" "$@"

# took: milliseconds since `began`.
begin() { began=${EPOCHREALTIME/./}; }
took() { echo $(((${EPOCHREALTIME/./} - began) / 1000)); }

# run NAME SECONDS ENVIRONMENT...: both ranks, within the time from start to end.
run() {
  local name=$1 limit=$(($2 * ${TCPX_TEST_TIME_SCALE:-1})) ms
  begin
  peers "$name" NCCL_SOCKET_IFNAME=eth "$v4" NCCL_SOCKET_RETRY_CNT=2 TCPX_THREADS=0 "${@:3}" ||
    { fail "$name"; return; }
  ms=$(took)
  check "$name" "$ms <= limit * 1000" "$ms ms"
}

# flush HOST...: nobody knows anybody's hardware address.
flush() {
  local host
  for host in "$@"; do ip -n "$host" neigh flush all; done
}

# Two rails, which nothing joins, and each host answers for an interface's own address only: rail 1 to the peer's rail
# 2.
netns_add a b
for host in a b; do netns_sysctls "$host" rp_filter=2 arp_ignore=1 arp_announce=2; done
for i in 1 2; do netns_pair "eth$i" "10.0.$i."; done
device_b=1 run rail-to-other-rail 20
logged rail-to-other-rail a 'lanes through eth1 [(]10.0.1.1[)] are bound to its address'
netns_unplug

# An address that no interface to the network has, as where hosts speak BGP.
netns_router r
netns_add a b
number=0
for host in a b; do
  netns_to_router "$host" up1 r "10.9.$((++number))."
  netns_link "$host" eth0 "$host" nowhere  # a dummy interface in all but name, which not every kernel has
  netns_address "$host" eth0 "10.8.0.$number/32"
  ip -n r route add "10.8.0.$number" via "10.9.$number.1"
done
run dummy-address 20
# No route at all: said at once.
ip -n b route delete default
begin
b_is_refused no-route 'connect to 10[.]8[.]0[.]1:.*through eth0.*Network is unreachable' NCCL_SOCKET_IFNAME=eth0 "$v4"
ms=$(took)
# Tries and their pauses would take 15 s; on a slow machine the two processes alone take 5 to start and to end.
check no-route "$ms < 10000 * ${TCPX_TEST_TIME_SCALE:-1}" "$ms ms"
netns_unplug

# Two networks that are not joined: eth1 of each host is in another one.
netns_add a b
for host in a b; do netns_sysctls "$host" rp_filter=2; done
netns_link a eth1 b eth2
netns_link a eth2 b eth1
netns_address a eth1 10.0.1.1
netns_address b eth2 10.0.1.2
netns_address a eth2 10.0.2.1
netns_address b eth1 10.0.2.2
device_b=1 run unconnected-networks 20
# The strict filter of other distributions: only what is not bound comes back.
for host in a b; do netns_run "$host" sysctl -qw net.ipv4.conf.{all,eth1,eth2}.rp_filter=1; done
device_b=1 run unconnected-strict 30
logged unconnected-strict a 'lanes through eth1 [(]10.0.1.1[)] are not bound' 1
netns_unplug

# Each interface in a subnet of its own, behind a router, and one default route; fused and not.
netns_router r
netns_run r sysctl -qw net.ipv4.conf.all.rp_filter=2
netns_add a b
number=0
for host in a b; do
  netns_sysctls "$host" rp_filter=2
  number=$((number + 1))
  for i in 1 2; do netns_to_router "$host" "eth$i" r "10.$number.$i."; done
done
device_a=1 device_b=1 run one-default-route 20
run one-default-route-fused 30 TCPX_FUSE=eth1+eth2
# No lane is tied to an interface that has no route: the kernel would look for the peer on its link, for seconds.
asked=$(ip -n a neigh show dev eth2 | grep '^10[.]2[.]' || true)
[[ -z $asked ]] || fail "one-default-route-fused: eth2 asked its link for what is behind the router: $asked"
logged one-default-route-fused a 'lanes through eth2 [(]10.1.2.1[)] are bound to its address'
logged one-default-route-fused a ', 2: routed 10[.]1[.]2[.]1 to '
# With a route of its own, each interface carries its lanes.
number=0
for host in a b; do
  number=$((number + 1))
  for i in 1 2; do
    ip -n "$host" route add default via "10.$number.$i.9" dev "eth$i" table "10$i"
    ip -n "$host" rule add from "10.$number.$i.1" table "10$i"
  done
done
netns_count a out second oifname eth2 meta l4proto tcp
# On a busy machine one run's lane may carry little.
for ((i = 0; i < 5 && $(netns_bytes a second) <= 1000000; ++i)); do
  run route-per-interface-fused 30 TCPX_FUSE=eth1+eth2
done
logged route-per-interface-fused a 'lanes through eth2 [(]10.1.2.1[)] are tied to it'
(($(netns_bytes a second) > 1000000)) || fail "route-per-interface-fused: by eth2 left $(netns_bytes a second) bytes"
netns_unplug

# Two interfaces in one subnet, no sysctls, no entry in any ARP cache: with and without fusing, whichever device.
netns_switch s
netns_add a b
number=0
for host in a b; do
  # As the distributions that loosen it: the strict filter drops what routes would not bring.
  netns_sysctls "$host" rp_filter=2
  number=$((number + 1))
  for i in 1 2; do netns_plug "$host" "eth$i" s "10.0.0.$number$i"; done
done
for pair in 0:0 0:1 1:0 1:1; do
  flush a b
  device_a=${pair%:*} device_b=${pair#*:} run "one-subnet-$pair" 20 PEER_WARNS=1
done
logged one-subnet-1:1 a '^WARN .*eth1, eth2 share a subnet.*sysctl -w net.ipv4.conf.all.arp_ignore=1' 1
flush a b
run one-subnet-fused 30 PEER_WARNS=1 TCPX_FUSE=eth1+eth2
# With the sysctls each device's traffic goes by its own interface, and nobody warns.
for host in a b; do netns_sysctls "$host" arp_ignore=1 arp_announce=2; done
flush a b
netns_count b in second iifname eth2 meta l4proto tcp
netns_count b out answers oifname eth2 meta l4proto tcp
device_a=1 device_b=1 run one-subnet-tied 20
logged one-subnet-tied a 'lanes through eth2 [(]10.0.0.12[)] are tied to it'
(($(netns_bytes b second) > 24000000)) || fail "one-subnet-tied: eth2 brought $(netns_bytes b second) bytes"
(($(netns_bytes b answers) > 24000000)) || fail "one-subnet-tied: by eth2 left $(netns_bytes b answers) bytes"
netns_end
