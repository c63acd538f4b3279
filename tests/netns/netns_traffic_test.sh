#!/bin/bash
# netns_traffic_test: two ranks on two hosts, through the real plugin, by every kind of address, in every mode.
#
# On one host much is easier than between two: addresses are local, link-local ones need no scope, nothing gets lost.
set -euo pipefail
source common/netns/netns.sh
netns_enter "$0" "$@"

peer=tests/netns/peer
scratch=$(mktemp -d)
failures=0
# What peer sends each way.
message_bytes=$((300 * 700 + 200 * 40000 + 24 * 1048576))

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# ranks FOLDER DEVICE ENVIRONMENT...: one on each host; their logs in FOLDER/a.log and b.log.
ranks() {
  local folder=$1 device=$2 rc=0
  shift 2
  mkdir "$folder"
  netns_run a env "$@" "$peer" "$folder" a b "$device" >"$folder/a.log" 2>&1 &
  local first=$!
  netns_run b env "$@" "$peer" "$folder" b a "$device" >"$folder/b.log" 2>&1 || rc=$?
  wait "$first" || rc=$?
  ((rc == 0)) || cat "$folder/a.log" "$folder/b.log"
  return "$rc"
}

# run NAME DEVICE INTERFACE ADDRESS MODE LANES ENVIRONMENT...: ADDRESS is how the peers' addresses must begin.
run() {
  local name=$1 device=$2 interface=$3 address=$4 mode=$5 lanes=$6
  shift 6
  local before after log=$scratch/$name/a.log
  before=$(netns_bytes b "$interface")
  ranks "$scratch/$name" "$device" "TCPX_LANES=$lanes" "$@" || { fail "$name"; return; }
  after=$(netns_bytes b "$interface")
  grep -q "send device $device: $lanes lanes\?, \[\?$address" "$log" || { cat "$log"; fail "$name: other addresses or lanes"; return; }
  ((after - before > message_bytes)) || { fail "$name: only $((after - before)) bytes came by $interface"; return; }
  if [[ $mode == io_uring ]] && ! grep -q 'engine io_uring' "$log"; then
    echo "SKIPPED: $name ran on epoll: $(grep -o 'engine epoll.*' "$log")"
    return
  fi
  echo "ok: $name ($((after - before)) bytes)"
}

# says NAME TEXT: the log of host a in run NAME has a line that matches.
says() {
  if grep -q "$2" "$scratch/$1/a.log"; then
    echo "ok: $1 says: $2"
  else
    cat "$scratch/$1/a.log"
    fail "$1 does not say: $2"
  fi
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

netns_add a b
netns_link a eth0 b eth0
netns_link a eth1 b eth1
# The kernel gives eth1 its address when it has seen the cable, which may take a second.
for ((try = 0; try < 600; ++try)); do
  [[ -z $(netns_link_local a eth1) || -z $(netns_link_local b eth1) ]] || break
  sleep 0.05
done
netns_address a eth0 10.1.0.1/24 fd00:1::1/64
netns_address b eth0 10.1.0.2/24 fd00:1::2/64
netns_count b in eth0 iifname eth0 meta l4proto tcp
netns_count b in eth1 iifname eth1 meta l4proto tcp

family=(NCCL_SOCKET_FAMILY=AF_INET)
each_mode v4 0 eth0 10.1.0.
family=(NCCL_SOCKET_FAMILY=AF_INET6)
each_mode v6 0 eth0 fd00:1::
# The second device has a link-local address only. Which interface it belongs to is known on its own host only.
each_mode link-local 1 eth1 fe80::

# Which interfaces are used and which not, why, and what chooses others; the addresses of each connection.
says v4-caller-1 'device 0: eth0 10\.1\.0\.1'
says v4-caller-1 'interfaces not used: .*lo (loopback, others come first)'
says v4-caller-1 'interfaces not used: .*eth1 (.*link-local only, no address of NCCL_SOCKET_FAMILY).*NCCL_SOCKET_IFNAME'
says link-local-caller-1 'device 1: eth1 fe80.*link-local addresses only.*NCCL_SOCKET_IFNAME'
says v4-caller-1 'device 0: listens on 10\.1\.0\.1:[0-9]'
says v4-caller-1 'send device 0: 1 lane, 10\.1\.0\.1:[0-9]* to 10\.1\.0\.2:[0-9]'
says v4-caller-1 'receive device 0: 1 lane, 10\.1\.0\.1:[0-9]* from 10\.1\.0\.2:[0-9]'

# TCP makes good what gets lost, behind the plugin's back.
netns_lose a 10 meta l4proto tcp
netns_lose b 10 meta l4proto tcp
family=(NCCL_SOCKET_FAMILY=AF_INET6)
run lossy 0 eth0 fd00:1:: any 4 "${family[@]}"

exit $((failures > 0))
