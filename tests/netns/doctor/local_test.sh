#!/bin/bash
# local_test: each of these set-ups is broken in one way, and the doctor names it; a sound one has no problem.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/doctor/doctor.sh
netns_enter "$0" "$@"

netns_pair eth0 10.1.0.
netns_settled a eth0
examine a && sound "a sound host"
finds "a sound host" ok nccl "2.28.9.*v11"
finds "a sound host" ok plugin "loads, v11, 1 of 1 devices"
finds "a sound host" ok plugin "eth0: listens, and connects to itself"
finds "a sound host" ok device "device 0: eth0 10.1.0.1/24, (veth pair|virtual)"
finds "a sound host" ok device "not used: lo "
finds "a sound host" ok lanes "device 0: [0-9]+ lanes? to another host [(]lane 0, and by eth0 [0-9]+, .*[)], [0-9]+ to this host"
finds "a sound host" ok link "eth0: mtu 1500, driver veth.*queues.*qdisc"
examine a STAND_IN_NCCL=22603 && finds "an older NCCL" ok plugin "loads, v10"
examine a TCPX_THREADS=2 TCPX_LANES=4 && sound "progress threads"
finds "a fixed number of lanes" ok lanes "device 0: 4 lanes to another host [(]TCPX_LANES[)], 4 to this host"
finds "progress threads" ok variable "TCPX_THREADS=2 TCPX_LANES=4|TCPX_LANES=4 TCPX_THREADS=2"
finds "progress threads" ok plugin "it says: mode pool of 2 progress threads"
examine a TCPX_SPEED_MBPS=eth0=25000 && finds "a speed that is set" ok device "25000 Mbit/s.*TCPX_SPEED_MBPS"
finds "lanes by speed" ok lanes "eth0 7, for 25000 Mbit.s[)]|eth0 7, for 25000 Mbit.s;"
examine a TCPX_SPEED_MBPS=400000 && finds "the most lanes" ok lanes "eth0 24, for 400000 Mbit.s, which is the most"

# What is loaded.
examine a LD_LIBRARY_PATH=/nowhere && broken "no plugin" plugin "would not find the plugin: .*libnccl-net-tcpx.so" &&
  fixed_by "no plugin" plugin "python -m tcpx --shell.*NCCL_NET_PLUGIN=/path/libnccl-net-tcpx.so"
echo "no library" >"$scratch/libnccl-net-tcpx.so"
examine a LD_LIBRARY_PATH="$scratch" &&
  broken "a plugin that is no library" plugin "would not find.*(too short|invalid ELF)"
examine a --plugin "$PWD/tests/support/loopback/loopback_plugin.so" && broken "another plugin" plugin "another plugin"
examine a STAND_IN_NCCL=2804 && broken "an NCCL that is too old" nccl "2.8.4.*too old"
examine a --nccl /nowhere/libnccl.so.2 && broken "no NCCL" nccl "no NCCL"
examine a NCCL_NET=Socket && broken "another transport" plugin "NCCL_NET is 'Socket'"
examine a NCCL_NET_PLUGIN=none && broken "no plugin wanted" plugin "NCCL_NET_PLUGIN is 'none'"

# Variables and files.
examine a TCPX_LANE=4 && broken "a misspelt variable" variable "TCPX_LANE is not known.*TCPX_LANES"
examine a NCCL_SOCKET_IFNMAE=eth0 && broken "a misspelt one of NCCL's" variable "NCCL_SOCKET_IFNMAE.*NCCL_SOCKET_IFNAME"
examine a TCPX_LANES=900 && broken "a value out of range" variable 'TCPX_LANES is "900"'
echo 'export NCCL_NET=tcpx' >"$scratch/.nccl.conf"
examine a && broken "export in nccl.conf" variable "nccl.conf.*'export NCCL_NET'"
rm "$scratch/.nccl.conf"
examine a TCPX_SECRET_FILE=/nowhere/secret && broken "no secret" secret "/nowhere/secret"
printf 'short' >"$scratch/short" && chmod 600 "$scratch/short"
examine a TCPX_SECRET_FILE="$scratch/short" && broken "a short secret" secret "short.*16"
printf 'long enough to be a secret' >"$scratch/open" && chmod 644 "$scratch/open"
examine a TCPX_SECRET_FILE="$scratch/open" && broken "a secret that all may read" secret "open"
chmod 600 "$scratch/open"
examine a TCPX_SECRET_FILE="$scratch/open" && sound "a secret"
examine a TCPX_TRAFFIC_CLASS=ef && finds "a traffic class" ok class "dscp 46"

# Interfaces.
examine a NCCL_SOCKET_IFNAME=nosuch && broken "no device" device "no usable network interface"
examine a TCPX_FUSE=eth0+nosuch && broken "a fused device with a stranger" device "nosuch"
ip -n a link set eth0 down
examine a && broken "the cable out" device "lo reaches this host only"
ip -n a link set eth0 up && netns_settled a eth0
ip -n a link add docker0 type bridge && ip -n a link set docker0 up && netns_address a docker0 172.17.0.1/16
ip -n a link add port0 type veth peer name port1
ip -n a link set port0 master docker0 up && ip -n a link set port1 up
netns_settled a docker0 port1
examine a NCCL_SOCKET_IFNAME=docker0 && broken "docker's bridge" device "docker0 is a docker bridge"
broken "the address of every bridge" address "172.17.0.1 of docker0"
netns_address a port1 10.1.0.1/24
examine a && broken "one address twice" address "10.1.0.1 is on several interfaces: eth0, port1"
ip -n a address delete 10.1.0.1/24 dev port1
netns_address a port1 10.1.0.9/24
examine a && broken "two interfaces in a subnet" device "share a subnet"
ip -n a link delete docker0 && ip -n a link delete port0
if python3 --version >/dev/null 2>&1; then
  netns_run a python3 tests/netns/doctor/offload.py eth0 off
  examine a && broken "offloads off" link "eth0: offloads are off: tso"
  netns_run a python3 tests/netns/doctor/offload.py eth0 on
else
  echo "SKIPPED: offloads off: no python3 here"
fi
ip -n b link set eth0 mtu 1000
examine b && broken "a tiny mtu" link "eth0: an mtu of 1000"
netns_shape b eth0 100mbit
examine b && finds "a shaped link" note link "queueing discipline tbf"

# CPUs, io_uring, limits.
examine a TCPX_THREADS=2 TCPX_CPUS=60000 && broken "CPUs that are not there" cpu "60000"
wrapper=(taskset -c 0)
examine a --ranks 8 && finds "one CPU for eight ranks" note cpu "too few CPUs"
finds "one CPU for eight ranks" ok cpu "caller-driven.*8 ranks"
wrapper=(tests/netns/doctor/without_io_uring 1)
examine a && finds "seccomp forbids io_uring" note engine "a seccomp filter forbids it"
examine a TCPX_ENGINE=io_uring TCPX_THREADS=1 &&
  broken "seccomp forbids what was asked for" engine "seccomp filter forbids"
wrapper=(tests/netns/doctor/without_io_uring 38)
examine a TCPX_ENGINE=io_uring TCPX_THREADS=1 && broken "seccomp hides io_uring" engine "seccomp filter hides it"
wrapper=()
examine a TCPX_THREADS=8 --ranks 8
if grep -q '^ok  *engine  *io_uring is usable' <<<"$said" &&
  (ulimit -l 0 && examine a && grep -q 'io_uring is not usable' <<<"$said"); then
  (ulimit -l 0 && examine a TCPX_ENGINE=io_uring TCPX_THREADS=1 &&
    broken "no locked memory" engine "locked memory is 0 KiB" && exit "$failures") || failures=$((failures + 1))
  # The limit is the user's: other processes may have all of it just now.
  (ulimit -l 256 && examine a TCPX_ENGINE=io_uring TCPX_THREADS=8 --ranks 8 &&
    broken "locked memory for a few rings" "(memory|engine)" "of the 64 rings|locked memory is 256 KiB" &&
    exit "$failures") || failures=$((failures + 1))
else
  echo "SKIPPED: locked memory: io_uring is not available here, or its rings are not counted by this kernel ($(uname -r))"
fi
(ulimit -Sn 512 && ulimit -Hn 512 && examine a &&
  broken "few descriptors" limit "descriptors: 512" && exit "$failures") || failures=$((failures + 1))
(ulimit -u 20 && examine a &&
  broken "few threads" limit "threads: 20" && exit "$failures") || failures=$((failures + 1))

# The kernel's sockets.
netns_run a sysctl -qw net.ipv4.tcp_rmem="4096 8192 16384"
examine a && broken "tiny receive buffers" buffers "tcp_rmem ends at 16 KiB"
netns_run a sysctl -qw net.ipv4.tcp_rmem="4096 131072 33554432" net.ipv4.tcp_wmem="4096 8192 65536"
examine a && broken "tiny send buffers" buffers "tcp_wmem ends at 64 KiB"
netns_run a sysctl -qw net.ipv4.tcp_wmem="4096 65536 16777216" net.ipv4.tcp_window_scaling=0
examine a && broken "no window scaling" buffers "tcp_window_scaling is 0"
netns_run a sysctl -qw net.ipv4.tcp_window_scaling=1 net.ipv4.tcp_sack=0
examine a && broken "no selective acknowledgements" buffers "tcp_sack is 0"
netns_run a sysctl -qw net.ipv4.tcp_sack=1
examine a NCCL_SOCKET_RCVBUF=1000000000 &&
  broken "a buffer above its cap" buffers "NCCL_SOCKET_RCVBUF asks for 1000000000"
examine a NCCL_SOCKET_SNDBUF=4096 && broken "a tiny fixed buffer" buffers "NCCL_SOCKET_SNDBUF fixes 4 KiB"
examine a TCPX_CONGESTION=nosuch && broken "an unknown congestion control" congestion "nosuch"
netns_run a sysctl -qw net.ipv4.ip_local_port_range="40000 40100"
examine a && broken "few ports to connect from" port "101 ports"
netns_run a sysctl -qw net.ipv4.ip_local_port_range="32768 60999"
examine a TCPX_PORT_RANGE=50000-50001 --ranks 8 && broken "few ports to listen on" port "2 ports, for 8 ranks"
netns_run a python3 -c 'import socket, time; s = socket.create_server(("10.1.0.1", 50000)); time.sleep(600)' &
await netns_listens a 50000
examine a TCPX_PORT_RANGE=50000-50000 && broken "ports in use" plugin "listen failed.*50000"
tracked=net.netfilter.nf_conntrack_tcp_timeout_established
if netns_run a sysctl -qw $tracked=60 2>/dev/null; then
  examine a && broken "idle connections are forgotten" conntrack "forgotten after 60 s"
  netns_run a sysctl -qw $tracked=432000
else
  echo "SKIPPED: idle connections are forgotten: no connection tracking in this kernel"
fi
examine a TCPX_GPU_DIRECT_STAGING=1
if grep -q 'no GPU driver here' <<<"$said"; then
  broken "no GPU driver" gpu "TCPX_GPU_DIRECT_STAGING has no effect"
else
  echo "SKIPPED: no GPU driver: this machine has one"
fi

# The command itself.
wrong --nosuch
wrong --ranks
wrong --ranks many
wrong --ranks 0
[[ $("$doctor" --help) == *'exit code: 0 '* ]] || fail "--help"
examine a --json
python3 -c 'import json, sys; r = json.load(sys.stdin); assert r["problems"] == 0 and r["findings"][0]["check"] == "nccl"' \
  <<<"$said" || not_so "--json"
doctor_end
