#!/bin/bash
# netns_fused_test: two ranks on two hosts that have several links, through the real plugin: fused devices.
#
# Every byte is checked by peer; here, by counters of each interface, that each link carried its part.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/peers.sh
netns_enter "$0" "$@"

# ready HOST LINKS: eth1 to ethN, set up as an operator must where they share a subnet.
ready() {
  local i
  netns_sysctls "$1" arp_ignore=1 arp_announce=2 rp_filter=2
  for ((i = 1; i <= $2; ++i)); do
    netns_count "$1" in "eth$i" iifname "eth$i" meta l4proto tcp
    netns_settled "$1" "eth$i"
  done
}

# cables LINKS own|one|none: so many, each in a subnet of its own, all in one, or with link-local addresses only.
cables() {
  local i
  for ((i = 1; i <= $1; ++i)); do
    case $2 in
      own) netns_pair "eth$i" "10.0.$i." "fd00:$i::" ;;
      one) netns_pair "eth$i" "10.0.0.$i" ;;
      none) netns_pair "eth$i" ;;
    esac
  done
  ready a "$1"
  ready b "$1"
}

# switched LINKS_A LINKS_B: all links of both hosts on one switch, in one subnet.
switched() {
  local host links number i
  netns_switch s
  netns_add a b
  for host in "a $1 1" "b $2 2"; do
    read -r host links number <<<"$host"
    for ((i = 1; i <= links; ++i)); do
      netns_plug "$host" "eth$i" s "10.0.0.$((number * 10 + i))" "fd00::$number:$i"
    done
    ready "$host" "$links"
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

# run NAME HOST PARTS ENVIRONMENT...: PARTS says how many per mille of the message bytes each link must bring to the
# host at least, "250:250".
run() {
  local name=$1 to=$2 parts=$3 i count before=() seen=()
  shift 3
  IFS=: read -ra parts <<<"$parts"
  for ((i = 1; i <= ${#parts[@]}; ++i)); do before[i]=$(netns_bytes "$to" "eth$i"); done
  peers "$name" "$@" || { fail "$name"; return; }
  for ((i = 1; i <= ${#parts[@]}; ++i)); do
    count=$(($(netns_bytes "$to" "eth$i") - before[i]))
    seen[i]=$((count / 1000))
    ((count >= message_bytes / 1000 * parts[i - 1])) ||
      { fail "$name: eth$i brought $count bytes of $message_bytes" "$scratch/$name/a.log"; return; }
  done
  echo "ok: $name (kB by each link: ${seen[*]})"
}

two=(NCCL_SOCKET_IFNAME=eth TCPX_FUSE=eth1+eth2)
four=(NCCL_SOCKET_IFNAME=eth TCPX_FUSE=eth1+eth2+eth3+eth4)

# A link of half of it all: no rank of this machine is faster than two such links together.
cables 2 own
rates 200 200
for mode in 'caller TCPX_THREADS=0' 'pool TCPX_THREADS=2' 'epoll TCPX_THREADS=2 TCPX_ENGINE=epoll'; do
  read -r name mode <<<"$mode"
  # shellcheck disable=SC2086
  run "v4-$name" b 250:250 "${two[@]}" "$v4" $mode
  # shellcheck disable=SC2086
  run "v6-$name" a 250:250 "${two[@]}" "$v6" $mode
done
logged v4-pool a 'device 0: eth1[+]eth2, 20000 Mbit/s together'
logged v4-pool a 'eth1 10[.]0[.]1[.]1, .* 10000 Mbit/s [(]from the kernel, which can.t know the real card[)]'
logged v4-pool a 'send device 0: 9 lanes'
logged v4-pool a ', 2: eth2 10.0.2.1 to 10.0.2.2,'
run lanes b 250:250 "${two[@]}" "$v4" TCPX_LANES=7
logged lanes a ', 6: eth2 '
logged lanes a ' send device ' 1
# Too few for two interfaces.
run one-lane b 250:250 "${two[@]}" "$v4" TCPX_LANES=1
logged one-lane a 'send device 0: 3 lanes'
# The one's first link is the other's second.
run crossed b 250:250 "${two[@]}" "$v4" b:TCPX_FUSE=eth2+eth1

rates 300 100
run unequal b 500:100 "${two[@]}" "$v4" TCPX_THREADS=2
rates 200 200

# Both ranks on one host: nothing leaves it.
netns_count a out left oifname != lo meta l4proto tcp
host_b=a peers_run this-host-v4 "${two[@]}" "$v4"
host_b=a peers_run this-host-v6 "${two[@]}" "$v6"
host_b=a peers_run this-host-lanes "${two[@]}" "$v4" TCPX_LANES=5
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
wrapper="bash $scratch/fake" device_a=0+1 device_b=0+1 run make-vdevice b 100:300 NCCL_SOCKET_IFNAME=eth "$v4"
logged make-vdevice a 'device 2: eth1[+]eth2, 50000 Mbit/s together'
logged make-vdevice a 'send device 2: 14 lanes'
(($(grep -oE ', [0-9]+: eth2 ' "$scratch/make-vdevice/a.log" | wc -l) == 11)) || fail "make-vdevice: lanes by speed"
launch refused a a NCCL_SOCKET_IFNAME=eth "$v4" -- "$peer" "$scratch/refused" x y 0+1
! ended_well refused a >/dev/null || fail "makeVDevice without cards"
logged refused a 'makeVDevice: device 0 [(]eth1[)] is on no PCI bus.*TCPX_FUSE'

# One link brings nothing over: its lanes go by the other one, and one line names it.
netns_drop b iifname eth2
peers_run dead-link "${two[@]}" "$v4" PEER_WARNS=1 NCCL_SOCKET_RETRY_CNT=0 TCPX_HELLO_TIMEOUT=4
logged dead-link a '^WARN .*connect to 10[.]0[.]2[.]2:[0-9]* through eth2 [(]10[.]0[.]2[.]1[)]: connect: timed out; .* from eth1 to 10[.]0[.]1[.]2:'
netns_unplug

# Link-local addresses only: which interface they belong to is known on their own host only.
cables 2 none
rates 200 200
run link-local b 250:250 "${two[@]}" TCPX_THREADS=2
host_b=a peers_run this-host-link-local "${two[@]}" TCPX_LANES=3
netns_unplug

# As many as a device may have, each by its link-local address.
cables 8 none
rates 50 50 50 50 50 50 50 50
run eight b 60:60:60:60:60:60:60:60 NCCL_SOCKET_IFNAME=eth TCPX_FUSE=eth1+eth2+eth3+eth4+eth5+eth6+eth7+eth8
logged eight a ', 8: eth8 fe80::[^ ]*%eth8 to fe80::[^ ]*%eth8'
netns_unplug

cables 2 one
rates 200 200
run one-subnet-2 b 250:250 "${two[@]}" "$v4" TCPX_THREADS=2
netns_unplug

cables 4 one
rates 100 100 100 100
run one-subnet-4 b 120:120:120:120 "${four[@]}" "$v4" TCPX_THREADS=2
run one-subnet-4-caller a 120:120:120:120 "${four[@]}" "$v4" TCPX_THREADS=0
netns_unplug

switched 1 2
for i in 1 2; do netns_shape s "b-eth$i" 100mbit; done
run one-to-two b 250:250 NCCL_SOCKET_IFNAME=eth "$v4" TCPX_THREADS=2 b:TCPX_FUSE=eth1+eth2
netns_unplug

switched 2 4
for i in 1 2; do netns_shape s "a-eth$i" 200mbit; done
for i in 1 2 3 4; do netns_shape s "b-eth$i" 100mbit; done
run two-to-four b 120:120:120:120 "${two[@]}" "$v4" TCPX_THREADS=2 b:TCPX_FUSE=eth1+eth2+eth3+eth4
logged two-to-four a 'send device 0: 9 lanes'
run four-to-two a 200:200 "${two[@]}" "$v6" TCPX_THREADS=2 b:TCPX_FUSE=eth1+eth2+eth3+eth4
netns_end
