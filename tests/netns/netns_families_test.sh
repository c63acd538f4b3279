#!/bin/bash
# netns_families_test: ranks whose interfaces have addresses of IPv4, IPv6 or both, through the real plugin.
#
# Every byte is checked by peer; here, by counters, that all of it went by the family that had to serve.
set -euo pipefail
source common/netns/netns.sh
netns_enter "$0" "$@"
source tests/netns/wirings.sh

# cables LINKS: hosts a and b, without addresses; what each sends by TCP is counted by family.
cables() {
  local ns i
  netns_add a b
  for ((i = 1; i <= $1; ++i)); do netns_link a "eth$i" b "eth$i"; done
  for ns in a b; do
    netns_run "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=2
    netns_count "$ns" out v4 oifname != lo meta nfproto ipv4 meta l4proto tcp
    netns_count "$ns" out v6 oifname != lo meta nfproto ipv6 meta l4proto tcp
  done
}

# ranks NAME ENVIRONMENT...: "a:NAME=VALUE" is for one of them.
ranks() {
  local folder=$scratch/$1 rc=0 word host
  shift
  mkdir "$folder"
  for host in a b; do
    local own=(NCCL_SOCKET_IFNAME=eth TCPX_LANES=3 TCPX_THREADS=0)
    for word in "$@"; do
      [[ $word == [ab]:* ]] || own+=("$word")
      [[ $word != "$host":* ]] || own+=("${word#*:}")
    done
    netns_run "$host" env "${own[@]}" "$peer" "$folder" "$host" "$([[ $host == a ]] && echo b || echo a)" 0 \
      >"$folder/$host.log" 2>&1 &
    [[ $host != a ]] || local first=$!
  done
  wait $! || rc=$?
  wait "$first" || rc=$?
  return "$rc"
}

# run NAME WAY ENVIRONMENT...: WAY is the families of the packets: v4, v6 or "v4 v6".
run() {
  local name=$1 way=$2 ns family seen
  local -A before=()
  shift 2
  for ns in a b; do for family in v4 v6; do before[$ns$family]=$(netns_packets "$ns" "$family"); done; done
  ranks "$name" "$@" || { cat "$scratch/$name"/*.log; fail "$name"; return; }
  for ns in a b; do
    for family in v4 v6; do
      seen=$(($(netns_packets "$ns" "$family") - ${before[$ns$family]}))
      if [[ " $way " == *" $family "* ]]; then
        ((seen > 0)) || { cat "$scratch/$name/a.log"; fail "$name: $ns sent nothing by $family"; }
      else
        ((seen == 0)) || { cat "$scratch/$name/a.log"; fail "$name: $ns sent $seen packets by $family"; }
      fi
    done
  done
  echo "ok: $name"
}

logged() { grep -qE "$3" "$scratch/$1/$2.log" || { cat "$scratch/$1/$2.log"; fail "$1: no line '$3'"; }; }

v4=NCCL_SOCKET_FAMILY=AF_INET
v6=NCCL_SOCKET_FAMILY=AF_INET6

cables 1
netns_address a eth1 10.0.1.1/24 fd00:1::1/64
netns_address b eth1 10.0.1.2/24 fd00:1::2/64
run both v4
logged both a 'device 0: eth1 10[.]0[.]1[.]1 and fd00:1::1,'
logged both a 'device 0: listens on \[fd00:1::1\]:'
# The first addresses are of different families: each side takes of the other's what it has.
run one-wants-v6 v6 "a:$v6"
run one-wants-v4 v4 "b:$v4"
run both-want-v6 v6 "$v6"
grep -q 'listens on 10[.]' "$scratch/both-want-v6/a.log" && fail "both-want-v6: listens on IPv4 all the same"
# One family is swallowed on the way, though the hosts have it.
for ns in a b; do netns_nft "$ns" "add rule inet netns losses meta nfproto ipv4 meta l4proto tcp drop"; done
run v4-swallowed 'v4 v6' PEER_WARNS=1
logged v4-swallowed a 'send device 0: 3 lanes, \[fd00:1::1\]:[0-9]+ to \[fd00:1::2\]:'
for ns in a b; do netns_nft "$ns" 'flush chain inet netns losses'; done
unplug

# One has both, the other one IPv6 only.
cables 1
netns_address a eth1 10.0.1.1/24 fd00:1::1/64
netns_address b eth1 fd00:1::2/64
run v6-only v6
# They have none in common, and no route to the other's: both hear so at once.
rc=0
ranks nothing-common "a:$v4" || rc=$?
((rc != 0)) || fail "nothing-common: connected"
cat "$scratch/nothing-common"/*.log | grep -qE 'connect to 10[.]0[.]1[.]1:[0-9]+ through eth1 [(]fd00:1::2[)]: connect: Network is unreachable.*the peer listens by IPv4 alone and eth1 here is used by IPv6 alone.*NCCL_SOCKET_FAMILY' ||
  { cat "$scratch/nothing-common"/*.log; fail "nothing-common: another error"; }
unplug

# The device has IPv6 only, and another interface leads to the peer's IPv4: as NCCL's sockets, by the routes.
cables 2
netns_address a eth1 10.0.1.1/24
netns_address b eth1 10.0.1.2/24
netns_address a eth2 fd00:2::1/64
netns_address b eth2 fd00:2::2/64
run by-another-interface 'v4 v6' b:NCCL_SOCKET_IFNAME=eth2 a:NCCL_SOCKET_IFNAME=eth1
logged by-another-interface b 'lanes through eth2 [(]fd00:2::2[)] are not bound, for it has no address of that family'
unplug

# Fused: the peer has one family, on each interface.
cables 2
for i in 1 2; do
  netns_address a "eth$i" "10.0.$i.1/24" "fd00:$i::1/64"
  netns_address b "eth$i" "fd00:$i::2/64"
done
run fused v6 TCPX_FUSE=eth1+eth2 TCPX_LANES=5
logged fused a ', 2: eth2 fd00:2::1 to fd00:2::2'
logged fused b ', 2: eth2 fd00:2::2 to fd00:2::1'
unplug

# Fused, and the first addresses of the members are of different families: all have IPv6.
cables 2
for ns in a:1 b:2; do
  netns_address "${ns%:*}" eth1 "10.0.1.${ns#*:}/24" "fd00:1::${ns#*:}/64"
  netns_address "${ns%:*}" eth2 "fd00:2::${ns#*:}/64"
done
run mixed-fused v6 TCPX_FUSE=eth1+eth2 TCPX_LANES=5
logged mixed-fused a 'device 0: eth1[+]eth2, '
logged mixed-fused a ', 2: eth2 fd00:2::1 to fd00:2::2'
unplug

exit $((failures > 0))
