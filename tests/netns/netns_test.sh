#!/bin/bash
# netns_test: does the lab do what it says? Every feature is used, and its absence would fail a check.
set -euo pipefail
source common/netns/lab.sh
netns_enter "$0" "$@"
netns_require python3
port=4000

# transfer tcp|udp HOST BYTES PIECE: from a to b. Sets packets, bytes and milliseconds to what b saw.
transfer() {
  local kind=$1 host=$2 seconds ready
  shift 2
  ready=$scratch/ready$((++port))
  launch transfer b b -- python3 tests/netns/traffic.py sink "$kind" "$port" "$ready"
  await test -e "$ready"
  netns_run a python3 tests/netns/traffic.py send "$kind" "$host" "$port" "$@"
  touch "$ready.end"
  ended_well transfer b
  read -r packets bytes seconds <"$scratch/transfer/b.log"
  milliseconds=$(awk -v s="$seconds" 'BEGIN { printf "%d", s * 1000 }')
}

netns_pair eth0 10.1.0. fd00:1::
netns_pair eth1

check "own network" "$(ip -o link | wc -l) == 1" "$(ip -o link | wc -l) devices outside of the hosts"

netns_settled a eth1
netns_settled b eth0 eth1
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
# carried CLASS: bytes.
carried() {
  tc -n a -s class show dev eth0 | awk -v class="$1" '/^class/ { c = $3 } /Sent/ && c == class { print $2 }'
}
check "each flow in its class" "$(carried 1:1) > 900000 && $(carried 1:2) > 900000 && $(carried 1:ffff) < 900000" \
  "$(carried 1:1), $(carried 1:2), others $(carried 1:ffff)"
transfer tcp 10.1.0.2 4000000 100000
check "no class for other flows" "$(carried 1:ffff) > 4000000" "$(carried 1:ffff) bytes in the default class"
netns_heal a eth0

# What is hashed goes by one path or the other.
netns_classes a eth0
for path in 1 2; do netns_rate a eth0 $path 1000; done
netns_hash a eth0 2 tcp dport 4000-5000
for _ in 1 2; do transfer tcp 10.1.0.2 10000 1000; done
check "hashed paths" "$(carried 1:1) + $(carried 1:2) > 20000" "$(carried 1:1) and $(carried 1:2) bytes"
netns_heal a eth0

# 1 MB at once against 100 KB/s and a burst of 256 KiB.
netns_limit_flows b 100 udp dport 4000-5000
transfer udp 10.1.0.2 1000000 1000
check "limit per flow" "packets > 200 && packets < 600 + milliseconds / 10" "$packets of 1000 packets arrived"
first=$packets
transfer udp 10.1.0.2 1000000 1000
check "limit of another flow" "packets > 200 && packets < 600 + milliseconds / 10" "$packets packets, $first before"
netns_calm b
transfer udp 10.1.0.2 1000000 1000
check "limit taken away" "packets == 1000" "$packets of 1000 packets arrived"
netns_heal b

netns_cut a eth0
rc=0
netns_run a timeout 20 python3 tests/netns/traffic.py send tcp 10.1.0.2 "$port" 1 1 2>/dev/null || rc=$?
check "cut cable" "rc != 0" "exit code $rc"
netns_mend a eth0
transfer tcp fd00:1::2 1000 1000
check "repaired cable" "bytes == 1000" "$bytes bytes"

# However a script ends: what it made is gone, processes too.
cat >"$scratch/killed.sh" <<'INNER'
source common/netns/lab.sh
netns_enter "$0" "$@"
netns_add x
launch sleeper x x -- sleep 1234.5
echo up >"$1"
wait
INNER
some_left() { ! none_left; }
none_left() { ! grep -qszE '1234[.]5' /proc/[0-9]*/cmdline; }
NETNS_INSIDE='' bash "$scratch/killed.sh" "$scratch/up" &
killed=$!
await test -e "$scratch/up"
await some_left || fail "no process of a script is seen"
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
await none_left || true
check "no process survives a killed script" "$(none_left && echo 1 || echo 0)" "waited for"

# Cases have networks of their own, and one that fails fails the script.
cat >"$scratch/cases.sh" <<'INNER'
source common/netns/lab.sh
netns_enter_each "$0" "says one" "says two" wrong
netns_add x
says() { echo "case $1"; }
wrong() { fail "so"; }
netns_case
INNER
rc=0
said=$(NETNS_INSIDE='' bash "$scratch/cases.sh") || rc=$?
right=$([[ $said == $'case one\ncase two\nFAILED: so' ]] && echo 1 || echo 0)
check "cases at the same time" "rc == 1 && right" "$said"
netns_end
