#!/bin/bash
# netns_class_test: which packets bear which DSCP, counted by the kernels of two hosts.
#
# Two communicators of one process, each with a traffic class of its own, are busy at the same time, both ways. Every
# packet must bear the class of its communicator: data and acknowledgements, from the SYN on at the side that dials,
# from the answer to the hello on at the other. What the accepting kernel sends before that, and nothing else, is
# unmarked.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/peers.sh
netns_enter "$0" "$@"

# count_classes IP DSCP...: counters of what each host sends, on each: for every DSCP all of it (bytes, packets), the
# SYNs of those who dial, packets without payload, packets of another priority than the DSCP's; and the same of what is
# unmarked. All headers with all options are 80 bytes, in IPv6 100, and the shortest packet with payload is an answer, 4
# bytes longer.
count_classes() {
  local ip=$1 host dscp size headers=80
  [[ $ip == ip ]] || headers=100
  shift
  for host in a b; do
    netns_heal "$host"
    {
      for dscp in "$@" 0; do
        echo "out all_$dscp meta l4proto tcp $ip dscp $dscp"
        echo "out syn_$dscp tcp flags & (syn | ack) == syn $ip dscp $dscp"
        size="meta l4proto tcp meta length"
        echo "out empty_$dscp $size <= $headers $ip dscp $dscp"
        echo "out payload_$dscp $size > $headers $ip dscp $dscp"
        # Only packets of a socket count: what the kernel sends for one that is gone (resets, the last acknowledgement
        # of a close) has the DSCP of what it answers, and in IPv4 no priority.
        echo "out odd_$dscp $size > $headers meta skuid >= 0 $ip dscp $dscp meta priority != 0:$((dscp / 8))"
        echo "out odd_empty_$dscp $size <= $headers meta skuid >= 0 $ip dscp $dscp meta priority != 0:$((dscp / 8))"
      done
      echo "out ecn_bits meta l4proto tcp $ip ecn != not-ect"
    } | netns_count_each "$host"
  done
}

# expect NAME LANES DSCP...: each DSCP is that of one communicator.
expect() {
  local name=$1 lanes=$2 host dscp accepted counter count sum
  shift 2
  # Each accepted socket, a health socket among them.
  accepted=$((lanes * $# + 1))
  for host in a b; do
    local -A packets=() bytes=()
    while read -r counter count sum; do packets[$counter]=$count bytes[$counter]=$sum; done < <(netns_counters "$host")
    for dscp in "$@"; do
      check "$name: $host sends its messages with dscp $dscp" "${bytes[all_$dscp]} > message_bytes"
      check "$name: $host marks each SYN with dscp $dscp" "${packets[syn_$dscp]} >= lanes"
      check "$name: $host marks acknowledgements with dscp $dscp" "${packets[empty_$dscp]} > 10"
      # An accepted socket gets the DSCP by one call and the priority by the next: an acknowledgement may come between.
      check "$name: $host gives dscp $dscp its priority" \
        "${packets[odd_$dscp]} == 0 && ${packets[odd_empty_$dscp]} <= accepted"
    done
    check "$name: $host dials with no unmarked SYN" "${packets[syn_0]} == 0"
    check "$name: $host sends no unmarked payload" "${packets[payload_0]} == 0"
    # The acknowledgements of the SYN and of the hello, and some that a slow machine repeats.
    check "$name: $host sends next to nothing unmarked" "${packets[empty_0]} <= 6 * accepted"
    check "$name: $host leaves the bits of ECN alone" "${packets[ecn_bits]} == 0"
  done
}

# run NAME IP LANES CLASSES DSCPS ENVIRONMENT...
run() {
  local name=$1 ip=$2 lanes=$3 classes=$4 dscps=$5
  shift 5
  # shellcheck disable=SC2086
  count_classes "$ip" $dscps
  peers "$name" "TCPX_LANES=$lanes" "$@" || { check "$name: all arrives" 0; return; }
  # shellcheck disable=SC2086
  expect "$name" "$lanes" $dscps
}

netns_pair eth0 10.1.0. fd00:1::
# So that a bit of ECN that is set is ours.
for host in a b; do netns_run "$host" sysctl -qw net.ipv4.tcp_ecn=0; done

for lanes in 1 4; do
  run "v4-caller-$lanes" ip "$lanes" "184 32" "46 8" "$v4" TCPX_THREADS=0
  run "v6-caller-$lanes" ip6 "$lanes" "184 32" "46 8" "$v6" TCPX_THREADS=0
done
run v4-pool ip 4 "184 32" "46 8" "$v4" TCPX_THREADS=2
run v6-pool ip6 4 "184 32" "46 8" "$v6" TCPX_THREADS=2
# With both bits of ECN set.
run v4-ecn ip 1 "187" "46" "$v4" TCPX_THREADS=0
run v6-ecn ip6 1 "187" "46" "$v6" TCPX_THREADS=0
run mapped ip 2 "1 2" "18 46" "$v4" TCPX_THREADS=0 TCPX_TRAFFIC_CLASS_MAP=0:cs1,1:af21,2:46
run default ip6 2 "-1" "34" "$v6" TCPX_THREADS=0 TCPX_TRAFFIC_CLASS=136
netns_end
