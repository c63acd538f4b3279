#!/bin/bash
# netns_traffic_test: two ranks on two hosts, through the real plugin, by every kind of address, in every mode.
#
# On one host much is easier than between two: addresses are local, link-local ones need no scope, nothing gets lost.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/peers.sh
netns_enter "$0" "$@"

# run NAME DEVICE INTERFACE ADDRESS MODE LANES ENVIRONMENT...: ADDRESS is how the peers' addresses must begin.
run() {
  local name=$1 device=$2 interface=$3 address=$4 mode=$5 lanes=$6 before came log=$scratch/$1/a.log
  shift 6
  before=$(netns_bytes b "$interface")
  device_a=$device device_b=$device peers "$name" "TCPX_LANES=$lanes" "$@" || { fail "$name"; return; }
  came=$(($(netns_bytes b "$interface") - before))
  grep -q "send device $device: $lanes lanes\?, \[\?$address" "$log" ||
    { fail "$name: other addresses or lanes" "$log"; return; }
  ((came > message_bytes)) || { fail "$name: only $came bytes came by $interface"; return; }
  if [[ $mode == io_uring ]] && ! grep -q 'engine io_uring' "$log"; then
    echo "SKIPPED: $name ran on epoll: $(grep -o 'engine epoll.*' "$log")"
    return
  fi
  echo "ok: $name ($came bytes)"
}

# says NAME TEXT: the log of host a in run NAME has a line that matches.
says() {
  local before=$failures
  logged "$1" a "$2"
  ((failures > before)) || echo "ok: $1 says: $2"
}

each_mode() {
  local name=$1 lanes
  shift
  for lanes in 1 4; do
    run "$name-caller-$lanes" "$@" caller "$lanes" "${family[@]}" TCPX_THREADS=0
    run "$name-io_uring-$lanes" "$@" io_uring "$lanes" "${family[@]}" TCPX_THREADS=2 TCPX_ENGINE=io_uring
    run "$name-epoll-$lanes" "$@" epoll "$lanes" "${family[@]}" TCPX_THREADS=2 TCPX_ENGINE=epoll
  done
}

netns_pair eth0 10.1.0. fd00:1::
netns_pair eth1
netns_settled a eth1
netns_settled b eth1
netns_count b in eth0 iifname eth0 meta l4proto tcp
netns_count b in eth1 iifname eth1 meta l4proto tcp

family=("$v4")
each_mode v4 0 eth0 10.1.0.
family=("$v6")
each_mode v6 0 eth0 fd00:1::
# The second device has a link-local address only. Which interface it belongs to is known on its own host only.
each_mode link-local 1 eth1 fe80::

# Which interfaces are used and which not, why, and what chooses others; the addresses of each connection.
says v4-caller-1 'device 0: eth0 10\.1\.0\.1'
says v4-caller-1 'interfaces not used: .*lo \(loopback\)'
says v4-caller-1 'interfaces not used: .*eth1 \(.*link-local only, no address of NCCL_SOCKET_FAMILY\).*NCCL_SOCKET_IFNAME'
says link-local-caller-1 'device 1: eth1 fe80.*link-local addresses only.*NCCL_SOCKET_IFNAME'
says v4-caller-1 'device 0: listens on 10\.1\.0\.1:[0-9]'
says v4-caller-1 'send device 0: 1 lane, 10\.1\.0\.1:[0-9]* to 10\.1\.0\.2:[0-9]'
says v4-caller-1 'receive device 0: 1 lane, 10\.1\.0\.1:[0-9]* from 10\.1\.0\.2:[0-9]'

# TCP sends lost packets again, and the plugin does not notice.
netns_lose a 10 meta l4proto tcp
netns_lose b 10 meta l4proto tcp
family=("$v6")
run lossy 0 eth0 fd00:1:: any 4 "${family[@]}"
netns_end
