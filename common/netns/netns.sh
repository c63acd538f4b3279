# netns.sh: hosts made of network namespaces, and networks between them that are slow, lossy or limited. To be sourced.
#
#   source common/netns/netns.sh
#   netns_enter "$0" "$@"             # first: the script starts anew with networks of its own
#   netns_add a b
#   netns_link a eth0 b eth0
#   netns_address a eth0 10.0.0.1/24
#   netns_address b eth0 10.0.0.2/24
#   netns_shape a eth0 100mbit
#   netns_run b some_server & netns_run a some_client
#
# Threads: none. Processes: all of a script's live in a process namespace of its own.
# Units:   rates as tc(8) writes them (100mbit), unless a name says otherwise; losses in per mille.
# Errors:  what this machine can't do ends the script as a skip, with a line "SKIPPED: reason". A command that fails ends
#          it as a failure (set -e).
# Cleaning up: nothing is made outside of the script's namespaces. They end with the script, however it ends, and with
#          them every process, address, qdisc and rule.
# Source:  unshare(1), ip-netns(8), tc-htb(8), tc-tbf(8), nft(8).

netns_skip() {
  echo "SKIPPED: $*"
  exit 0
}

# Commands that the script can't do without.
netns_require() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || netns_skip "no command $command here (packages: iproute2, nftables)"
  done
}

# Starts the script ("$0" "$@") anew with namespaces of its own: users, network, mounts, processes.
netns_enter() {
  export PATH=$PATH:/usr/sbin:/sbin
  if [[ ${NETNS_INSIDE:-} == 1 ]]; then
    mount -t tmpfs tmpfs /run  # for /run/netns
    # With the process numbers of outside the leak sanitizer finds nothing; some containers forbid this mount.
    mount -t proc proc /proc 2>/dev/null || export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
    ip link set lo up
    return
  fi
  netns_require unshare mount ip tc nft
  local own=(unshare --map-root-user --net --mount --pid --fork --kill-child)
  # What changes its groups (tcpdump) can't do so where users are the namespace's own.
  [[ -z ${NETNS_OUTER_USERS:-} ]] || own=(unshare --net --mount --pid --fork --kill-child)
  "${own[@]}" true 2>/dev/null || own=(unshare --map-root-user --net --mount --pid --fork --kill-child)
  "${own[@]}" true 2>/dev/null || own=(unshare --net --mount --pid --fork --kill-child)
  "${own[@]}" true 2>/dev/null || netns_skip "this machine forbids namespaces of one's own (unshare)"
  NETNS_INSIDE=1 exec "${own[@]}" bash "$@"
}

netns_run() {
  local ns=$1
  shift
  ip netns exec "$ns" "$@"
}

# Makes hosts, with a loopback device each.
netns_add() {
  local ns
  for ns in "$@"; do
    ip netns add "$ns"
    # Addresses serve at once, without waiting for a duplicate to show (RFC 4862, 5.4).
    netns_run "$ns" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
    ip -n "$ns" link set lo up
  done
}

# netns_link A DEVICE_A B DEVICE_B: a cable. Both devices get a link-local IPv6 address.
netns_link() {
  ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
  ip -n "$1" link set "$2" up
  ip -n "$3" link set "$4" up
}

# netns_address HOST DEVICE ADDRESS/LENGTH...
netns_address() {
  local ns=$1 device=$2 address
  shift 2
  for address in "$@"; do
    if [[ $address == *:* ]]; then
      ip -n "$ns" address add "$address" dev "$device" nodad
    else
      ip -n "$ns" address add "$address" dev "$device"
    fi
  done
}

# netns_link_local HOST DEVICE: the device's link-local address, without scope.
netns_link_local() {
  ip -n "$1" -6 -o address show dev "$2" scope link | awk '{ sub("/.*", "", $4); print $4; exit }'
}

# netns_shape HOST DEVICE RATE: everything that leaves the device together, by a token bucket.
netns_shape() {
  # A burst of two of the largest packets (64 KiB, segmented by the device), and 50 ms of queue.
  tc -n "$1" qdisc replace dev "$2" root handle 1: tbf rate "$3" burst 128kb latency 50ms
}

# netns_class HOST DEVICE RATE MATCH...: only packets that nft's MATCH selects ("tcp sport 4000"), in a class of their own;
# the rest leaves as fast as it can. May be called again for further classes.
netns_class() {
  local ns=$1 device=$2 rate=$3 number
  shift 3
  if [[ $(tc -n "$ns" qdisc show dev "$device") != *'qdisc htb 1:'* ]]; then
    tc -n "$ns" qdisc replace dev "$device" root handle 1: htb default ffff
    tc -n "$ns" class add dev "$device" parent 1: classid 1:ffff htb rate 100gbit quantum 200000
  fi
  number=$(tc -n "$ns" class show dev "$device" | wc -l)
  tc -n "$ns" class add dev "$device" parent 1: classid "1:$number" htb rate "$rate" quantum 60000
  netns_table "$ns"
  # htb takes a packet's priority for the number of its class.
  netns_nft "$ns" "add rule inet netns classes oifname $device $* meta priority set 1:$number"
}

netns_nft() {
  local ns=$1
  shift
  netns_run "$ns" nft "$*"
}

# The chains that the functions below fill, in the order in which a packet meets them.
netns_table() {
  ! netns_run "$1" nft list table inet netns >/dev/null 2>&1 || return 0
  netns_nft "$1" "
    table inet netns {
      set flows { type inet_service . inet_service; flags dynamic; size 4096; timeout 10m; }
      chain counters_in { type filter hook input priority -20; }
      chain counters_out { type filter hook output priority -20; }
      chain losses { type filter hook input priority 0; }
      chain classes { type filter hook postrouting priority 10; }
    }"
}

# netns_count HOST in|out NAME MATCH...: counts the packets that reach the host, or leave it, and match.
netns_count() {
  local ns=$1 way=$2 name=$3
  shift 3
  netns_table "$ns"
  netns_nft "$ns" "add counter inet netns $name"
  netns_nft "$ns" "add rule inet netns counters_$way $* counter name $name"
}

# netns_packets HOST NAME, netns_bytes HOST NAME: what a counter stands at.
netns_packets() { netns_run "$1" nft list counter inet netns "$2" | awk '/packets/ { print $2 }'; }
netns_bytes() { netns_run "$1" nft list counter inet netns "$2" | awk '/packets/ { print $4 }'; }

# netns_lose HOST PER_MILLE [MATCH...]: each packet that reaches the host and matches gets lost with this probability.
netns_lose() {
  local ns=$1 share=$2
  shift 2
  netns_table "$ns"
  netns_nft "$ns" "add rule inet netns losses $* numgen random mod 1000 < $share drop"
}

# netns_limit_flows HOST KBYTES_PER_SECOND [MATCH...]: each flow (pair of ports) that reaches the host has this much to
# itself, and what comes faster is dropped, as cloud providers do it.
netns_limit_flows() {
  local ns=$1 rate=$2
  shift 2
  netns_table "$ns"
  netns_nft "$ns" "add rule inet netns losses $* add @flows { th sport . th dport limit rate over $rate kbytes/second" \
    "burst 256 kbytes } drop"
}

# netns_heal HOST [DEVICE...]: takes away all shaping, classes, losses, limits and counters.
netns_heal() {
  local ns=$1 device
  shift
  netns_run "$ns" nft flush ruleset
  for device in "$@"; do tc -n "$ns" qdisc delete dev "$device" root 2>/dev/null || true; done
}

# netns_cut HOST DEVICE, netns_mend HOST DEVICE: the cable out and in again. IPv6 addresses stay.
netns_cut() {
  netns_run "$1" sysctl -qw "net.ipv6.conf.$2.keep_addr_on_down=1"
  ip -n "$1" link set "$2" down
}
netns_mend() { ip -n "$1" link set "$2" up; }

# netns_flows HOST: the TCP connections that stand, "local:port peer:port" each.
netns_flows() { netns_run "$1" ss -tnH state established | awk '{ print $3, $4 }'; }
