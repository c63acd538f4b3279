# netns.sh: hosts made of network namespaces, and what joins them. Sourced by lab.sh.
#
#   netns_add h0 h1                     # hosts
#   netns_pair eth0 10.1.0. fd00:1::    # hosts a and b, with a cable: 10.1.0.1 and fd00:1::1, 10.1.0.2 and fd00:1::2
#   netns_switch s; netns_plug h0 eth0 s 10.2.0.1
#   netns_router r; netns_to_router h1 eth1 r 10.3.0.
#   netns_run a ping 10.1.0.2
#   netns_cut a eth0; netns_mend a eth0
#   netns_unplug                        # everything is gone
#
# Names:   a switch's ports are HOST-DEVICE, a router's interfaces too. A host is at .1 of the net that leads to its
# router, the router at .9. An address without a length has 24 bits, or 64.
# Source:  unshare(1), ip-netns(8).
# shellcheck shell=bash

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
  netns_require unshare mount ip tc nft ss
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

netns_hosts() { ip netns list | awk '{ print $1 }'; }

# Takes all hosts away, with what is between them.
netns_unplug() {
  local ns
  for ns in $(netns_hosts); do ip netns delete "$ns"; done
}

# netns_sysctls HOST NAME=VALUE...: of IPv4, for all interfaces, those to come included.
netns_sysctls() {
  local ns=$1 setting
  shift
  for setting in "$@"; do
    netns_run "$ns" sysctl -qw "net.ipv4.conf.all.$setting" "net.ipv4.conf.default.$setting"
  done
}

# netns_link A DEVICE_A B DEVICE_B: a cable. Both devices get a link-local IPv6 address.
netns_link() {
  ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
  ip -n "$1" link set "$2" up
  ip -n "$3" link set "$4" up
}

# netns_address HOST DEVICE ADDRESS[/LENGTH]...
netns_address() {
  local ns=$1 device=$2 address
  shift 2
  for address in "$@"; do
    if [[ $address == *:* ]]; then
      [[ $address == */* ]] || address+=/64
      ip -n "$ns" address add "$address" dev "$device" nodad
    else
      [[ $address == */* ]] || address+=/24
      ip -n "$ns" address add "$address" dev "$device"
    fi
  done
}

# netns_pair DEVICE NET...: a cable between hosts a and b, which are made where there are none. a has number 1 in each
# net.
netns_pair() {
  local device=$1 net
  shift
  [[ -e /run/netns/a ]] || netns_add a b
  netns_link a "$device" b "$device"
  for net in "$@"; do
    netns_address a "$device" "${net}1"
    netns_address b "$device" "${net}2"
  done
}

# netns_switch NAME
netns_switch() {
  netns_add "$1"
  ip -n "$1" link add bridge type bridge
  ip -n "$1" link set bridge up
}

# netns_plug HOST DEVICE SWITCH [ADDRESS...]
netns_plug() {
  netns_link "$1" "$2" "$3" "$1-$2"
  ip -n "$3" link set "$1-$2" master bridge
  netns_address "$1" "$2" "${@:4}"
}

# netns_router NAME
netns_router() {
  netns_add "$1"
  netns_run "$1" sysctl -qw net.ipv4.ip_forward=1
}

# netns_to_router HOST DEVICE ROUTER NET: by the first of these a host reaches all that it has no other route to.
netns_to_router() {
  netns_link "$1" "$2" "$3" "$1-$2"
  netns_address "$1" "$2" "${4}1"
  netns_address "$3" "$1-$2" "${4}9"
  [[ -n $(ip -n "$1" route show default) ]] || ip -n "$1" route add default via "${4}9"
}

# netns_link_local HOST DEVICE: the device's link-local address, without scope. None as long as nobody may bind to it: a
# worker of the kernel ends that soon after the device has come up, even where it looks for no duplicate.
netns_link_local() {
  ip -n "$1" -6 -o address show dev "$2" scope link -tentative | awk '{ sub("/.*", "", $4); print $4; exit }'
}

# netns_settled HOST DEVICE...: waits until the kernel calls what came up usable, which may take it a second.
netns_settled() {
  local ns=$1 device
  shift
  for device in "$@"; do
    await netns_usable "$ns" "$device" || fail "$device of $ns does not come up"
  done
}
netns_usable() {
  [[ $(ip -n "$1" -o link show dev "$2") == *LOWER_UP*'state UP'* ]] || return 1
  [[ ! -e /proc/net/if_inet6 || -n $(netns_link_local "$1" "$2") ]]
}

# netns_listens HOST PORT: somebody does, by TCP.
netns_listens() { [[ -n $(netns_run "$1" ss -tlnH "sport = :$2") ]]; }

# netns_cut HOST DEVICE, netns_mend HOST DEVICE: the cable out and in again. IPv6 addresses stay.
netns_cut() {
  netns_run "$1" sysctl -qw "net.ipv6.conf.$2.keep_addr_on_down=1"
  ip -n "$1" link set "$2" down
}
netns_mend() { ip -n "$1" link set "$2" up; }
