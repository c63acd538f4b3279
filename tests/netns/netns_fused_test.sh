#!/bin/bash
# netns_fused_test: two ranks on two hosts that have several links, through the real plugin: fused devices.
#
# Every byte is checked by peer; here, by counters of each interface, that each link carried its part.
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

# settled HOST LINKS: the kernel takes its time to call a link that came up usable.
settled() {
  local i try
  for ((i = 1; i <= $2; ++i)); do
    for ((try = 0; try < 600; ++try)); do
      [[ $(ip -n "$1" -o link show dev "eth$i") != *'state UP'* || -z $(netns_link_local "$1" "eth$i") ]] || break
      sleep 0.05
    done
  done
}

# host NAME LINKS: eth1 to ethN, set up as an operator must where they share a subnet.
host() {
  local i
  netns_run "$1" sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 net.ipv4.conf.all.rp_filter=2
  for ((i = 1; i <= $2; ++i)); do netns_count "$1" in "eth$i" iifname "eth$i" meta l4proto tcp; done
}

# cables LINKS: hosts a and b, and that many cables between them.
cables() {
  local i
  netns_add a b
  for ((i = 1; i <= $1; ++i)); do netns_link a "eth$i" b "eth$i"; done
  host a "$1"
  host b "$1"
  settled a "$1"
  settled b "$1"
}

# switch LINKS_A LINKS_B: all links of both hosts on one switch, in one subnet.
switch() {
  local ns links i port=0
  netns_add a b s
  ip -n s link add bridge type bridge
  ip -n s link set bridge up
  for ns in a:$1:1 b:$2:2; do
    IFS=: read -r ns links number <<<"$ns"
    for ((i = 1; i <= links; ++i)); do
      netns_link "$ns" "eth$i" s "port$((++port))"
      ip -n s link set "port$port" master bridge
      netns_address "$ns" "eth$i" "10.0.0.$((number * 10 + i))/24" "fd00::$number:$i/64"
    done
    host "$ns" "$links"
    settled "$ns" "$links"
  done
}

own_subnets() {
  local i
  for ((i = 1; i <= $1; ++i)); do
    netns_address a "eth$i" "10.0.$i.1/24" "fd00:$i::1/64"
    netns_address b "eth$i" "10.0.$i.2/24" "fd00:$i::2/64"
  done
}

one_subnet() {
  local i
  for ((i = 1; i <= $1; ++i)); do
    netns_address a "eth$i" "10.0.0.$((10 + i))/24"
    netns_address b "eth$i" "10.0.0.$((20 + i))/24"
  done
}

# rates RATE...: of the links, in Mbit/s, in both directions.
rates() {
  local i=0 rate
  for rate in "$@"; do
    netns_shape a "eth$((++i))" "${rate}mbit"
    netns_shape b "eth$i" "${rate}mbit"
  done
}

unplug() {
  local ns
  for ns in a b s; do ip netns delete "$ns" 2>/dev/null || true; done
}

# ranks NAME HOST_A HOST_B DEVICE ENVIRONMENT...: fuse_b stands for TCPX_FUSE at the second rank; as_fake is a command
# that runs both.
ranks() {
  local folder=$scratch/$1 host_a=$2 host_b=$3 device=$4 rc=0
  shift 4
  mkdir "$folder"
  netns_run "$host_a" env "$@" $as_fake "$peer" "$folder" a b "$device" >"$folder/a.log" 2>&1 &
  local first=$!
  netns_run "$host_b" env "$@" ${fuse_b:+TCPX_FUSE=$fuse_b} $as_fake "$peer" "$folder" b a "$device" \
    >"$folder/b.log" 2>&1 || rc=$?
  wait "$first" || rc=$?
  ((rc == 0)) || cat "$folder/a.log" "$folder/b.log"
  return "$rc"
}
fuse_b='' as_fake=''

# run NAME HOST PARTS DEVICE ENVIRONMENT...: PARTS says how many per mille of the message bytes each link must bring to
# the host at least, "250:250".
run() {
  local name=$1 to=$2 parts=$3 device=$4 i count before=() seen=()
  shift 4
  IFS=: read -ra parts <<<"$parts"
  for ((i = 1; i <= ${#parts[@]}; ++i)); do before[i]=$(netns_bytes "$to" "eth$i"); done
  ranks "$name" a b "$device" "$@" || { fail "$name"; return; }
  for ((i = 1; i <= ${#parts[@]}; ++i)); do
    count=$(($(netns_bytes "$to" "eth$i") - before[i]))
    seen[i]=$((count / 1000))
    ((count >= message_bytes / 1000 * parts[i - 1])) ||
      { cat "$scratch/$name/a.log"; fail "$name: eth$i brought $count bytes of $message_bytes"; return; }
  done
  echo "ok: $name (kB by each link: ${seen[*]})"
}

# logged NAME PATTERN: the first rank said so.
logged() { grep -q "$2" "$scratch/$1/a.log" || { cat "$scratch/$1/a.log"; fail "$1: no line '$2'"; }; }

two=(NCCL_SOCKET_IFNAME=eth TCPX_FUSE=eth1+eth2)
four=(NCCL_SOCKET_IFNAME=eth TCPX_FUSE=eth1+eth2+eth3+eth4)
v4=NCCL_SOCKET_FAMILY=AF_INET
v6=NCCL_SOCKET_FAMILY=AF_INET6

# A link of half of it all: no rank of this machine is faster than two such links together.
cables 2
own_subnets 2
rates 200 200
for mode in 'caller TCPX_THREADS=0' 'pool TCPX_THREADS=2' 'epoll TCPX_THREADS=2 TCPX_ENGINE=epoll'; do
  read -r name mode <<<"$mode"
  run "v4-$name" b 250:250 0 "${two[@]}" "$v4" $mode
  run "v6-$name" a 250:250 0 "${two[@]}" "$v6" $mode
done
logged v4-pool 'device 0: eth1+eth2, 20000 Mbit/s together'
logged v4-pool 'eth1 10[.]0[.]1[.]1, .* 10000 Mbit/s (from the kernel, which can.t know what is behind it)'
logged v4-pool 'send device 0: 9 lanes'
logged v4-pool ', 2: eth2 10.0.2.1 to 10.0.2.2,'
run lanes b 250:250 0 "${two[@]}" "$v4" TCPX_LANES=7
logged lanes ', 6: eth2 '
(($(grep -c ' send device ' "$scratch/lanes/a.log") == 1)) || fail "lanes: more than one line of a connection"
# Too few for two interfaces.
run one-lane b 250:250 0 "${two[@]}" "$v4" TCPX_LANES=1
logged one-lane 'send device 0: 3 lanes'
# The one's first link is the other's second.
fuse_b=eth2+eth1 run crossed b 250:250 0 "${two[@]}" "$v4"

rates 300 100
run unequal b 500:100 0 "${two[@]}" "$v4" TCPX_THREADS=2
rates 200 200

# Both ranks on one host: nothing leaves it.
netns_count a out left oifname != lo meta l4proto tcp
ranks this-host-v4 a a 0 "${two[@]}" "$v4" || fail "this host, IPv4"
ranks this-host-v6 a a 0 "${two[@]}" "$v6" || fail "this host, IPv6"
ranks this-host-lanes a a 0 "${two[@]}" "$v4" TCPX_LANES=5 || fail "this host, 5 lanes"
(($(netns_packets a left) == 0)) || fail "between ranks on one host $(netns_packets a left) packets left it"

# What /sys says of two cards, one four times as fast as the other.
for i in 1 2; do
  card=$scratch/sys/devices/pci0000:00/0000:00:0$i.0
  mkdir -p "$card" "$scratch/sys/bus/pci" "$scratch/sys/class/net/eth$i"
  ln -s "$scratch/sys/bus/pci" "$card/subsystem"
  ln -s "$card" "$scratch/sys/class/net/eth$i/device"
  echo $((i * i * 10000)) >"$scratch/sys/class/net/eth$i/speed"
done
printf '#!/bin/bash\nmount --bind "%s" /sys/class/net\nexec "$@"\n' "$scratch/sys/class/net" >"$scratch/fake"
as_fake="bash $scratch/fake" run make-vdevice b 100:300 0+1 NCCL_SOCKET_IFNAME=eth "$v4"
logged make-vdevice 'device 2: eth1+eth2, 50000 Mbit/s together'
logged make-vdevice 'send device 2: 6 lanes'
(($(grep -o ', [0-9]: eth2 ' "$scratch/make-vdevice/a.log" | wc -l) == 4)) || fail "make-vdevice: lanes by speed"
rc=0
netns_run a env NCCL_SOCKET_IFNAME=eth "$v4" "$peer" "$scratch" x y 0+1 >"$scratch/refused.log" 2>&1 || rc=$?
grep -q 'makeVDevice: device 0 (eth1) is on no PCI bus.*TCPX_FUSE' "$scratch/refused.log" && ((rc != 0)) ||
  { cat "$scratch/refused.log"; fail "makeVDevice without cards"; }

# One link brings nothing over: its lanes go by the other one, and one line names it.
netns_nft b "add rule inet netns losses iifname eth2 drop"
ranks dead-link a b 0 "${two[@]}" "$v4" PEER_WARNS=1 NCCL_SOCKET_RETRY_CNT=0 TCPX_HELLO_TIMEOUT=1 ||
  fail "dead-link: not connected"
logged dead-link '^WARN .*connect to 10[.]0[.]2[.]2:[0-9]* through eth2 (10[.]0[.]2[.]1): connect: timed out; .* from eth1 to 10[.]0[.]1[.]2:'
unplug

# Link-local addresses only: which interface they belong to is known on their own host only.
cables 2
rates 200 200
run link-local b 250:250 0 "${two[@]}" TCPX_THREADS=2
ranks this-host-link-local a a 0 "${two[@]}" TCPX_LANES=3 || fail "this host, link-local"
unplug

# As many as a device may have, each by its link-local address.
cables 8
rates 50 50 50 50 50 50 50 50
run eight b 60:60:60:60:60:60:60:60 0 NCCL_SOCKET_IFNAME=eth TCPX_FUSE=eth1+eth2+eth3+eth4+eth5+eth6+eth7+eth8
logged eight ', 8: eth8 fe80::[^ ]*%eth8 to fe80::[^ ]*%eth8'
unplug

cables 2
one_subnet 2
rates 200 200
run one-subnet-2 b 250:250 0 "${two[@]}" "$v4" TCPX_THREADS=2
unplug

cables 4
one_subnet 4
rates 100 100 100 100
run one-subnet-4 b 120:120:120:120 0 "${four[@]}" "$v4" TCPX_THREADS=2
run one-subnet-4-caller a 120:120:120:120 0 "${four[@]}" "$v4" TCPX_THREADS=0
unplug

switch 1 2
netns_shape s port2 100mbit
netns_shape s port3 100mbit
fuse_b=eth1+eth2 run one-to-two b 250:250 0 NCCL_SOCKET_IFNAME=eth "$v4" TCPX_THREADS=2
unplug

switch 2 4
for i in 1 2; do netns_shape s "port$i" 200mbit; done
for i in 3 4 5 6; do netns_shape s "port$i" 100mbit; done
fuse_b=eth1+eth2+eth3+eth4 run two-to-four b 120:120:120:120 0 "${two[@]}" "$v4" TCPX_THREADS=2
logged two-to-four 'send device 0: 9 lanes'
fuse_b=eth1+eth2+eth3+eth4 run four-to-two a 200:200 0 "${two[@]}" "$v6" TCPX_THREADS=2
unplug

exit $((failures > 0))
