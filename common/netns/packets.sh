# packets.sh: what becomes of packets between hosts, and what they were. Sourced by lab.sh.
#
#   netns_shape a eth0 100mbit                  # all that leaves eth0
#   netns_class a eth0 8mbit tcp sport 4000     # what matches, in a class of its own
#   netns_count b in http tcp dport 80; netns_packets b http
#   netns_lose b 10 meta l4proto tcp            # one packet in a hundred that reaches b
#   netns_drop b tcp dport 4000
#   netns_break drop "$(netns_flows a)" r       # a flow, at a router
#   netns_heal a eth0                           # nothing of that any more
#
# Units:   rates as tc(8) writes them (100mbit), unless a name says otherwise; losses in per mille. A MATCH is nft's.
# Source:  tc-htb(8), tc-tbf(8), nft(8), ss(8).
# shellcheck shell=bash

# netns_burst MBIT: what a shaper of that rate may send at once, in bytes: 10 ms, and two of the largest packets (64
# KiB, cut by the device) at least. It makes up for one that wakes late, as on a machine that others use too.
netns_burst() { echo $(($1 * 1250 > 131072 ? $1 * 1250 : 131072)); }

# netns_shape HOST DEVICE RATE [BURST]: all that leaves the device together, by a token bucket with 50 ms of queue.
netns_shape() {
  tc -n "$1" qdisc replace dev "$2" root handle 1: tbf rate "$3" burst "${4:-$(netns_burst "${3%mbit}")}" latency 50ms
}

# netns_classes HOST DEVICE: room for classes 1:1 and so on. What is in none of them leaves as fast as it can.
netns_classes() {
  netns_table "$1"
  [[ $(tc -n "$1" qdisc show dev "$2") != *'qdisc htb 1:'* ]] || return 0
  tc -n "$1" qdisc replace dev "$2" root handle 1: htb default ffff
  tc -n "$1" class add dev "$2" parent 1: classid 1:ffff htb rate 100gbit burst 1mb quantum 200000
}

netns_number() { printf '1:%x' "$1"; }

# netns_rate HOST DEVICE NUMBER MBIT: makes the class, or changes it.
netns_rate() {
  local bytes
  bytes=$(netns_burst "$4")
  tc -n "$1" class replace dev "$2" parent 1: classid "$(netns_number "$3")" htb rate "${4}mbit" \
    burst "$bytes" cburst "$bytes" quantum 60000
}

# netns_sort HOST DEVICE NUMBER MATCH...: what matches goes to that class.
netns_sort() {
  # htb takes a packet's priority for the number of its class.
  netns_nft "$1" "add rule inet netns classes oifname $2 ${*:4} meta priority set $(netns_number "$3")"
}

# netns_hash HOST DEVICE COUNT MATCH...: what matches goes to one of the classes 1 to COUNT, by a hash of its source
# port.
netns_hash() {
  local i map=''
  for ((i = 0; i < $3; ++i)); do map+="${map:+, }$i : $(netns_number $((i + 1)))"; done
  netns_nft "$1" "add rule inet netns classes oifname $2 ${*:4} \
    meta priority set jhash tcp sport mod $3 seed 0x$(printf %x $((RANDOM + 1))) map { $map }"
}

# netns_class HOST DEVICE RATE MATCH...: what matches, in a class of its own. May be called again for further classes.
netns_class() {
  local ns=$1 device=$2 rate=$3 number
  shift 3
  netns_classes "$ns" "$device"
  number=$(tc -n "$ns" class show dev "$device" | wc -l)
  tc -n "$ns" class add dev "$device" parent 1: classid "$(netns_number "$number")" htb rate "$rate" quantum 60000
  netns_sort "$ns" "$device" "$number" "$@"
}

netns_nft() {
  local ns=$1
  shift
  netns_run "$ns" nft "$*"
}

# The chains that the functions here fill, in the order in which a packet meets them.
netns_table() {
  ! netns_run "$1" nft list table inet netns >/dev/null 2>&1 || return 0
  netns_nft "$1" "
    table inet netns {
      set flows { type inet_service . inet_service; flags dynamic; size 4096; timeout 10m; }
      chain counters_in { type filter hook input priority -20; }
      chain counters_out { type filter hook output priority -20; }
      chain losses { type filter hook input priority 0; }
      chain passing { type filter hook forward priority 0; }
      chain classes { type filter hook postrouting priority 10; }
    }"
}

# netns_count HOST in|out NAME MATCH...: counts the packets that reach the host, or leave it, and match.
netns_count() { netns_count_each "$1" <<<"${*:2}"; }
# netns_count_each HOST: the same for each line "in|out NAME MATCH" that it reads.
netns_count_each() {
  local way name match commands=''
  while read -r way name match; do
    commands+="add counter inet netns $name; add rule inet netns counters_$way $match counter name $name;"
  done
  netns_table "$1"
  netns_nft "$1" "$commands"
}

# netns_packets HOST NAME, netns_bytes HOST NAME: what a counter is at. netns_counters HOST: "NAME PACKETS BYTES" of
# each.
netns_counters() { netns_run "$1" nft list counters | awk '/counter/ { name = $2 } /packets/ { print name, $2, $4 }'; }
netns_packets() { netns_run "$1" nft list counter inet netns "$2" | awk '/packets/ { print $2 }'; }
netns_bytes() { netns_run "$1" nft list counter inet netns "$2" | awk '/packets/ { print $4 }'; }

# netns_drop HOST MATCH..., netns_reject HOST HOW MATCH...: what reaches the host and matches. HOW: 'tcp reset'.
netns_drop() {
  netns_table "$1"
  netns_nft "$1" "add rule inet netns losses ${*:2} drop"
}
netns_reject() {
  netns_table "$1"
  netns_nft "$1" "add rule inet netns losses ${*:3} reject with $2"
}

# netns_lose HOST PER_MILLE [MATCH...]: each packet that reaches the host and matches gets lost with this probability.
netns_lose() { netns_drop "$1" "${@:3}" "numgen random mod 1000 < $2"; }

# netns_break ACTION FLOWS HOST...: what becomes of these flows ("LOCAL PEER" lines, as netns_flows has them), both
# ways, on each of the hosts, which may be an end of them or a router between.
netns_break() {
  local action=$1 ns mine theirs chain rules=''
  while read -r mine theirs; do
    [[ -n $theirs ]] || continue
    for chain in losses passing; do
      rules+="add rule inet netns $chain tcp sport ${mine##*:} tcp dport ${theirs##*:} $action;"
      rules+="add rule inet netns $chain tcp sport ${theirs##*:} tcp dport ${mine##*:} $action;"
    done
  done <<<"$2"
  for ns in "${@:3}"; do
    netns_table "$ns"
    netns_nft "$ns" "$rules"
  done
}

# netns_calm HOST...: what drops, rejects and limits is gone; counters stay.
netns_calm() {
  local ns
  for ns in "$@"; do netns_nft "$ns" 'flush chain inet netns losses; flush chain inet netns passing'; done
}

# netns_limit_flows HOST KBYTES_PER_SECOND [MATCH...]: each flow (pair of ports) that reaches the host has this much to
# itself, and what comes faster is dropped, as cloud providers do it.
netns_limit_flows() {
  netns_drop "$1" "${@:3}" "add @flows { th sport . th dport limit rate over $2 kbytes/second burst 256 kbytes }"
}

# netns_heal HOST [DEVICE...]: takes away all shaping, classes, losses, limits and counters.
netns_heal() {
  local ns=$1 device
  shift
  netns_run "$ns" nft flush ruleset
  for device in "$@"; do tc -n "$ns" qdisc delete dev "$device" root 2>/dev/null || true; done
}

# netns_flows HOST [FILTER...]: the established TCP connections, "LOCAL:PORT PEER:PORT" each. FILTER is ss's.
netns_flows() { netns_run "$1" ss -tnH state established "${@:2}" | awk '{ gsub(/%[^]: ]+/, ""); print $3, $4 }'; }

# netns_sent HOST [FILTER...]: of the established TCP connections "BYTES LOCAL:PORT PEER:PORT", what was sent and
# acknowledged, the busiest first.
netns_sent() {
  netns_run "$1" ss -tinHO state established "${@:2}" | awk '
    { bytes = 0; gsub(/%[^]: ]+/, "")
      if (match($0, /bytes_acked:[0-9]+/)) bytes = substr($0, RSTART + 12, RLENGTH - 12)
      print bytes, $3, $4 }' | sort -srn
}

# netns_watch HOST FILE FILTER: lines "SECONDS PEER_PORT LOCAL_PORT BYTES", what was sent and acknowledged, ten times a
# second, until there is a FILE.
netns_watch() {
  # shellcheck disable=SC2016  # For the inner shell.
  netns_run "$1" bash -c '
    while [[ ! -e $1 ]]; do
      echo "at $EPOCHREALTIME"
      ss -tinHO "$2"
      sleep 0.1
    done' watch "$2" "$3" | awk '
    $1 == "at" { now = $2; next }
    { split($4, local, ":"); split($5, far, ":"); if (match($0, /bytes_acked:[0-9]+/)) {
        print now, far[2], local[2], substr($0, RSTART + 12, RLENGTH - 12); fflush() } }'
}
