#!/bin/bash
# netns_paths_test: wirings in which NCCL's own sockets work, through the real plugin: which socket is tied to a device,
# bound to an address or not bound at all, and what becomes of lanes that find no way.
#
# Every byte is checked by peer.
set -euo pipefail
source common/netns/netns.sh
netns_enter "$0" "$@"
source tests/netns/wirings.sh

# sysctls HOST NAME=VALUE...: of all interfaces, those to come included.
sysctls() {
  local ns=$1 setting
  shift
  for setting in "$@"; do
    netns_run "$ns" sysctl -qw "net.ipv4.conf.all.$setting" "net.ipv4.conf.default.$setting"
  done
}

# switch LINKS: hosts a and b, each with that many links to one switch, without addresses.
switch() {
  local ns i port=0
  netns_add a b s
  ip -n s link add bridge type bridge
  ip -n s link set bridge up
  for ns in a b; do
    # As the distributions that loosen it: the strict filter drops what routes would not bring.
    sysctls "$ns" rp_filter=2
    for ((i = 1; i <= $1; ++i)); do
      netns_link "$ns" "eth$i" s "port$((++port))"
      ip -n s link set "port$port" master bridge
    done
  done
}

# run NAME SECONDS DEVICE_A DEVICE_B ENVIRONMENT...: both ranks, within the time from start to end.
run() {
  local name=$1 limit=$2 device_a=$3 device_b=$4 folder=$scratch/$1 rc=0 began=${EPOCHREALTIME/./} took
  shift 4
  mkdir "$folder"
  local own=(NCCL_SOCKET_IFNAME=eth NCCL_SOCKET_FAMILY=AF_INET NCCL_SOCKET_RETRY_CNT=2 TCPX_THREADS=0 "$@")
  netns_run a env "${own[@]}" "$peer" "$folder" a b "$device_a" >"$folder/a.log" 2>&1 &
  local first=$!
  netns_run b env "${own[@]}" "$peer" "$folder" b a "$device_b" >"$folder/b.log" 2>&1 || rc=$?
  wait "$first" || rc=$?
  took=$(((${EPOCHREALTIME/./} - began) / 1000))
  if ((rc != 0)); then
    cat "$folder/a.log" "$folder/b.log"
    fail "$name"
  elif ((took > limit * 1000)); then
    fail "$name: took $took ms"
  else
    echo "ok: $name ($took ms)"
  fi
}

# logged NAME PATTERN: the first rank said so.
logged() { grep -q "$2" "$scratch/$1/a.log" || { cat "$scratch/$1/a.log"; fail "$1: no line '$2'"; }; }
once() { (($(grep -c "$2" "$scratch/$1/a.log") == 1)) || { cat "$scratch/$1/a.log"; fail "$1: not once '$2'"; }; }

# Two rails, which nothing joins, and each host answers for an interface's own address only: rail 1 to the peer's rail 2.
netns_add a b
for ns in a b; do sysctls "$ns" rp_filter=2 arp_ignore=1 arp_announce=2; done
for i in 1 2; do netns_link a "eth$i" b "eth$i"; done
for i in 1 2; do
  netns_address a "eth$i" "10.0.$i.1/24"
  netns_address b "eth$i" "10.0.$i.2/24"
done
run rail-to-other-rail 20 0 1
logged rail-to-other-rail 'lanes through eth1 (10.0.1.1) are bound to its address'
unplug

# An address that no interface to the network has, as where hosts speak BGP.
netns_add a b r
for ns in a b; do
  netns_link "$ns" up1 r "${ns}1"
  netns_link "$ns" eth0 "$ns" nowhere  # a dummy interface in all but name, which not every kernel has
done
netns_run r sysctl -qw net.ipv4.ip_forward=1
netns_address a up1 10.9.1.1/30
netns_address r a1 10.9.1.2/30
netns_address b up1 10.9.2.1/30
netns_address r b1 10.9.2.2/30
netns_address a eth0 10.8.0.1/32
netns_address b eth0 10.8.0.2/32
ip -n a route add default via 10.9.1.2
ip -n b route add default via 10.9.2.2
ip -n r route add 10.8.0.1 via 10.9.1.1
ip -n r route add 10.8.0.2 via 10.9.2.1
run dummy-address 20 0 0
# No route at all: said at once.
ip -n b route delete default
began=${EPOCHREALTIME/./}
mkdir "$scratch/no-route"
netns_run a env NCCL_SOCKET_IFNAME=eth0 NCCL_SOCKET_FAMILY=AF_INET "$peer" "$scratch/no-route" a b >/dev/null 2>&1 &
first=$!
if netns_run b env NCCL_SOCKET_IFNAME=eth0 NCCL_SOCKET_FAMILY=AF_INET "$peer" "$scratch/no-route" b a \
  >"$scratch/no-route/log" 2>&1; then
  fail "no-route: connected"
fi
took=$(((${EPOCHREALTIME/./} - began) / 1000))
kill "$first" 2>/dev/null || true
wait "$first" 2>/dev/null || true
grep -q 'connect to 10[.]8[.]0[.]1:.*through eth0.*Network is unreachable' "$scratch/no-route/log" ||
  { cat "$scratch/no-route/log"; fail "no-route: another error"; }
((took < 3000)) && echo "ok: no-route ($took ms)" || fail "no-route: took $took ms"
unplug

# Two networks that are not joined: eth1 of each host is in another one.
netns_add a b
for ns in a b; do sysctls "$ns" rp_filter=2; done
netns_link a eth1 b eth2
netns_link a eth2 b eth1
netns_address a eth1 10.0.1.1/24
netns_address b eth2 10.0.1.2/24
netns_address a eth2 10.0.2.1/24
netns_address b eth1 10.0.2.2/24
run unconnected-networks 20 0 1
# The strict filter of other distributions: only what is not bound comes back.
for ns in a b; do netns_run "$ns" sysctl -qw net.ipv4.conf.{all,eth1,eth2}.rp_filter=1; done
run unconnected-strict 30 0 1
once unconnected-strict 'lanes through eth1 (10.0.1.1) are not bound'
unplug

# Each interface in a subnet of its own, behind a router, and one default route; fused and not.
netns_add a b r
netns_run r sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=2
for ns in a:1 b:2; do
  for i in 1 2; do
    netns_link "${ns%:*}" "eth$i" r "${ns%:*}$i"
    netns_address "${ns%:*}" "eth$i" "10.${ns#*:}.$i.1/24"
    netns_address r "${ns%:*}$i" "10.${ns#*:}.$i.2/24"
  done
  sysctls "${ns%:*}" rp_filter=2
  ip -n "${ns%:*}" route add default via "10.${ns#*:}.1.2"
done
run one-default-route 20 1 1
run one-default-route-fused 30 0 0 TCPX_FUSE=eth1+eth2
# No lane is tied to an interface that has no route: the kernel would look for the peer on its link, for seconds.
asked=$(ip -n a neigh show dev eth2 | grep '^10[.]2[.]' || true)
[[ -z $asked ]] || fail "one-default-route-fused: eth2 asked its link for what is behind the router: $asked"
logged one-default-route-fused 'lanes through eth2 (10.1.2.1) are bound to its address'
logged one-default-route-fused ', 2: routed 10[.]1[.]2[.]1 to '
# With a route of its own, each interface carries its lanes.
for ns in a:1 b:2; do
  for i in 1 2; do
    own="10.${ns#*:}.$i"
    ip -n "${ns%:*}" route add default via "$own.2" dev "eth$i" table "10$i"
    ip -n "${ns%:*}" rule add from "$own.1" table "10$i"
  done
done
netns_count a out second oifname eth2 meta l4proto tcp
run route-per-interface-fused 30 0 0 TCPX_FUSE=eth1+eth2
logged route-per-interface-fused 'lanes through eth2 (10.1.2.1) are tied to it'
(($(netns_bytes a second) > 1000000)) || fail "route-per-interface-fused: by eth2 left $(netns_bytes a second) bytes"
unplug

# Two interfaces in one subnet, no sysctls, no entry in any ARP cache: with and without fusing, whichever device.
switch 2
for i in 1 2; do
  netns_address a "eth$i" "10.0.0.1$i/24"
  netns_address b "eth$i" "10.0.0.2$i/24"
done
for pair in 0:0 0:1 1:0 1:1; do
  for ns in a b; do ip -n "$ns" neigh flush all; done
  run "one-subnet-$pair" 20 "${pair%:*}" "${pair#*:}" PEER_WARNS=1
done
once one-subnet-1:1 '^WARN .*eth1, eth2 share a subnet.*sysctl -w net.ipv4.conf.all.arp_ignore=1'
for ns in a b; do ip -n "$ns" neigh flush all; done
run one-subnet-fused 30 0 0 PEER_WARNS=1 TCPX_FUSE=eth1+eth2
# With the sysctls each device's traffic goes by its own interface, and nobody warns.
for ns in a b; do
  sysctls "$ns" arp_ignore=1 arp_announce=2
  ip -n "$ns" neigh flush all
done
netns_count b in second iifname eth2 meta l4proto tcp
netns_count b out answers oifname eth2 meta l4proto tcp
run one-subnet-tied 20 1 1
logged one-subnet-tied 'lanes through eth2 (10.0.0.12) are tied to it'
(($(netns_bytes b second) > 24000000)) || fail "one-subnet-tied: eth2 brought $(netns_bytes b second) bytes"
(($(netns_bytes b answers) > 24000000)) || fail "one-subnet-tied: by eth2 left $(netns_bytes b answers) bytes"
unplug

exit $((failures > 0))
