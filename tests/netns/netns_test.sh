#!/bin/bash
# netns_test: does the harness do what it says? Every feature is used, and its absence would fail a check.
set -euo pipefail
source common/netns/netns.sh
netns_enter "$0" "$@"
netns_require python3

scratch=$(mktemp -d)
port=4000
failures=0

check() {
  if (($2)); then
    echo "ok: $1 ($3)"
  else
    echo "FAILED: $1 ($3)"
    failures=$((failures + 1))
  fi
}

# transfer tcp|udp HOST BYTES PIECE: from a to b. Sets packets, bytes and milliseconds to what b saw.
transfer() {
  local kind=$1 host=$2
  shift 2
  port=$((port + 1))
  netns_run b python3 tests/netns/traffic.py sink "$kind" "$port" "$scratch/ready$port" >"$scratch/seen" &
  local sink=$!
  for ((i = 0; i < 300; ++i)); do
    [[ ! -e $scratch/ready$port ]] || break
    sleep 0.05
  done
  netns_run a python3 tests/netns/traffic.py send "$kind" "$host" "$port" "$@"
  wait "$sink"
  local seconds
  read -r packets bytes seconds <"$scratch/seen"
  milliseconds=$(awk -v s="$seconds" 'BEGIN { printf "%d", s * 1000 }')
}

netns_add a b
netns_link a eth0 b eth0
netns_link a eth1 b eth1
netns_address a eth0 10.1.0.1/24 fd00:1::1/64
netns_address b eth0 10.1.0.2/24 fd00:1::2/64

check "own network" "$(ip -o link | wc -l) == 1" "$(ip -o link | wc -l) devices outside of the hosts"

for host in 10.1.0.2 fd00:1::2 "$(netns_link_local b eth0)%eth0" "$(netns_link_local b eth1)%eth1"; do
  transfer tcp "$host" 1000000 100000
  check "bytes reach $host" "bytes == 1000000" "$bytes bytes"
done

netns_count b in arrived udp dport 4000-5000
netns_count a out left udp dport 4000-5000
netns_count b in others udp dport 1
transfer udp 10.1.0.2 1000000 1000
check "counters of packets" "$(netns_packets b arrived) == 1000 && $(netns_packets a left) == 1000" \
  "$(netns_packets a left) left, $(netns_packets b arrived) arrived"
check "counters of bytes" "$(netns_bytes b arrived) == 1028000" "$(netns_bytes b arrived) bytes with headers"
check "counters of what matches only" "$(netns_packets b others) == 0" "$(netns_packets b others) packets"
netns_heal b
netns_heal a

netns_lose b 300 udp dport 4000-5000
transfer udp 10.1.0.2 1000000 1000
check "losses" "packets > 500 && packets < 900" "$packets of 1000 packets arrived"
transfer tcp fd00:1::2 1000000 100000
check "losses of what matches only" "bytes == 1000000" "$bytes bytes by TCP"
netns_heal b
transfer udp 10.1.0.2 1000000 1000
check "losses healed" "packets == 1000" "$packets of 1000 packets arrived"

# Too fast is impossible; too slow is the machine's business. 4 MB at 40 Mbit/s take 800 ms, less the bucket.
netns_shape a eth0 40mbit
transfer tcp 10.1.0.2 4000000 100000
check "token bucket" "milliseconds > 600" "$milliseconds ms for 4 MB at 40 Mbit/s"
netns_heal a eth0
check "token bucket healed" "$(tc -n a qdisc show dev eth0 | grep -c tbf) == 0" "$(tc -n a qdisc show dev eth0)"

netns_class a eth0 8mbit tcp dport $((port + 1))
netns_class a eth0 40mbit tcp dport $((port + 2))
transfer tcp 10.1.0.2 1000000 100000
check "class of one flow" "milliseconds > 800" "$milliseconds ms for 1 MB at 8 Mbit/s"
transfer tcp fd00:1::2 4000000 100000
check "class of another flow" "milliseconds > 600" "$milliseconds ms for 4 MB at 40 Mbit/s"
sent_in_classes=$(tc -n a -s class show dev eth0 | awk '/^class/ { c = $3 } /Sent/ { print c, ($2 > 900000) }' | sort | xargs)
transfer tcp 10.1.0.2 4000000 100000
rest=$(tc -n a -s class show dev eth0 | awk '/^class/ { c = $3 } /Sent/ && c == "1:ffff" { print $2 }')
check "each flow in its class" "$([[ $sent_in_classes == '1:1 1 1:2 1 1:ffff 0' ]] && echo 1 || echo 0)" "$sent_in_classes"
check "no class for other flows" "rest > 4000000" "$rest bytes in the default class"
netns_heal a eth0

# 1 MB at once against 100 KB/s and a burst of 256 KiB.
netns_limit_flows b 100 udp dport 4000-5000
transfer udp 10.1.0.2 1000000 1000
check "limit per flow" "packets > 200 && packets < 600" "$packets of 1000 packets arrived"
first=$packets
transfer udp 10.1.0.2 1000000 1000
check "limit of another flow" "packets > 200 && packets < 600" "$packets packets, $first before"
netns_heal b

netns_cut a eth0
rc=0
netns_run a timeout 20 python3 tests/netns/traffic.py send tcp 10.1.0.2 "$port" 1 1 2>/dev/null || rc=$?
check "cut cable" "rc != 0" "exit code $rc"
netns_mend a eth0
transfer tcp fd00:1::2 1000 1000
check "mended cable" "bytes == 1000" "$bytes bytes"

# However a script ends: what it made is gone, processes too.
cat >"$scratch/killed.sh" <<'INNER'
source common/netns/netns.sh
netns_enter "$0" "$@"
netns_add x
netns_run x sleep 1234.5 &
echo up >"$1"
wait
INNER
NETNS_INSIDE='' bash "$scratch/killed.sh" "$scratch/up" &
killed=$!
for ((i = 0; i < 300; ++i)); do
  [[ ! -e $scratch/up ]] || break
  sleep 0.05
done
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
sleep 0.2
left=$(grep -lzs '1234[.]5' /proc/[0-9]*/cmdline | wc -l || true)
check "no process survives a killed script" "left == 0" "$left left"

exit $((failures > 0))
