#!/bin/bash
# qos.sh: two net_bench runs of different traffic classes on one congested link between two hosts (network namespaces).
#
#   bench/netns/qos.sh --plugin PATH [options]
#
# The link divides its rate by DSCP (htb): a guarantee for each class, and the whole of it to a class that is alone.
# Each class is shown alone, both together as one class, and both together as two: the high class keeps its bandwidth
# while the low one is squeezed into the rest.
#
# Units:   Mbit/s of IP packets, headers included, as they arrive.
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, or --check found otherwise, 2 wrong usage. A machine
#          that forbids namespaces or has no tc, nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk. Leaves nothing.
# Source:  unshare(1), tc-htb(8), nft(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: qos.sh --plugin PATH [options]

  --plugin PATH        the plugin's .so
  --net-bench PATH     default: net_bench next to the script, or as Bazel builds it with --config=opt
  --rate MBIT          of the link (default 100, which four spinning processes can fill even on two CPUs)
  --guarantee PERCENT  of the link for the high class (default 90); the low class has the rest
  --high N, --low N    traffic classes: octets, DSCP times 4 (default 184, ef, and 32, cs1)
  --size SIZE          of the messages (default 1M)
  --seconds N          length of each measurement (default 3)
  --ipv6               instead of IPv4
  --check              exit code 1 unless the high class, in company, gets at least 0.85 of its guarantee, and the low
                       class at most twice its own

Everything else (TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment. Unless set, TCPX_CONGESTION is cubic and
TCPX_LANES 9: together they keep so much queued that a class whose process waits for a CPU does not lose its share to
the other.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
rate=100 guarantee=90 high=184 low=32 size=1M seconds=3 ip=ip check=0
declare -A sets=([--ipv6]=ip=ip6 [--check]=check=1)
declare -A takes=([--plugin]=plugin [--net-bench]=net_bench [--rate]=rate [--guarantee]=guarantee [--high]=high
  [--low]=low [--size]=size [--seconds]=seconds)
read_options "$@"
for number in "$rate" "$guarantee" "$high" "$low" "$seconds"; do
  [[ $number =~ ^[0-9]+$ ]] || wrong "'$number' is no number"
done
((guarantee > 0 && guarantee < 100)) || wrong "--guarantee is 1 to 99"
((high < 256 && low < 256 && high / 4 != low / 4)) || wrong "--high and --low are two DSCPs, octets from 0 to 255"
require_plugin
find_net_bench
netns_enter "$0" "$@"

[[ $ip == ip ]] && address=10.0.0. family=AF_INET || address=fd00:: family=AF_INET6
export NCCL_SOCKET_FAMILY=$family TCPX_CONGESTION=${TCPX_CONGESTION:-cubic} TCPX_LANES=${TCPX_LANES:-9}

# Each run's receivers listen on ports of its own, so that its bytes are known whatever their class.
declare -A ports=([high]=41000-41099 [low]=42000-42099) control=([high]=5001 [low]=5002)

# class NUMBER PERCENT [MATCH...]: a guarantee of the link, and more where it is free.
class() {
  local number=$1 kbit=$((rate * 10 * $2)) bytes
  shift 2
  bytes=$(netns_burst "$rate")
  tc -n a class add dev eth0 parent 1:1 classid "1:$number" htb rate "${kbit}kbit" ceil "${rate}mbit" \
    burst "$bytes" cburst "$bytes" quantum 60000
  # A tenth of a second of queue.
  tc -n a qdisc add dev eth0 parent "1:$number" bfifo limit $((rate * 12500 > 1048576 ? rate * 12500 : 1048576))
  (($# == 0)) || netns_sort a eth0 "$number" "$@"
}

link() {
  local bytes
  bytes=$(netns_burst "$rate")
  netns_pair eth0 10.0.0. fd00::
  netns_count b in high tcp dport "${ports[high]}"
  netns_count b in low tcp dport "${ports[low]}"
  netns_table a
  tc -n a qdisc replace dev eth0 root handle 1: htb default 4
  tc -n a class add dev eth0 parent 1: classid 1:1 htb rate "${rate}mbit" burst "$bytes" cburst "$bytes" quantum 60000
  class 2 "$guarantee" meta l4proto tcp "$ip" dscp $((high / 4))
  class 3 $((100 - guarantee)) meta l4proto tcp "$ip" dscp $((low / 4))
  class 4 1
}

# start NAME CLASS: a run that does not end.
start() {
  local name=$1 port=${control[$1]} class=(--plugin "$plugin" --traffic-class "$2")
  TCPX_PORT_RANGE=${ports[$name]} serve "$name" "$port" "${class[@]}"
  drive "$name" "$([[ $ip == ip ]] && echo "${address}2" || echo "[${address}2]"):$port" "${class[@]}" "${endless[@]}" \
    -b "$size" --verbose
  await came "$name" $((${seen[$name]} + 4194304)) || failed "the run of the $name class moves nothing"
}
came() { (($(netns_bytes b "$1") >= $2)); }

# measure TITLE NAME=CLASS...: sets mbps to what each of the named runs got.
declare -A seen mbps
measure() {
  local title=$1 run name names=() text=
  shift
  for run in "$@"; do names+=("${run%=*}"); done
  for name in "${names[@]}"; do seen[$name]=$(netns_bytes b "$name"); done
  for run in "$@"; do start "${run%=*}" "${run#*=}"; done
  sleep 1  # Until the flows have found their rates.
  local begun=${EPOCHREALTIME/./}
  for name in "${names[@]}"; do seen[$name]=$(netns_bytes b "$name"); done
  sleep "$seconds"
  local micros=$((${EPOCHREALTIME/./} - begun))
  for name in "${names[@]}"; do
    mbps[$name]=$((($(netns_bytes b "$name") - ${seen[$name]}) * 8 / micros))
    text+="  $name $(printf %5d "${mbps[$name]}")"
  done
  for name in "${names[@]}"; do still_running "$name"; done
  stop "${names[@]}"
  printf '%-40s%s\n' "$title" "$text"
}

link
echo "# a link of $rate Mbit/s, $guarantee % of it for the high class ($high: dscp $((high / 4)))," \
  "the rest for the low one ($low: dscp $((low / 4)));" \
  "messages of $size, ${ip/ip6/IPv6}, Mbit/s" | sed 's/, ip,/, IPv4,/'
measure "high alone" "high=$high"
measure "low alone" "low=$low"
measure "together, both of the low class" "high=$low" "low=$low"
measure "together" "high=$high" "low=$low"
grep -ho 'comm .* send device .*' "$scratch"/*/a.log | sort -u | sed 's/^/# /' || true
((check == 0)) || ((mbps[high] * 10000 >= 85 * rate * guarantee && mbps[low] * 100 <= 2 * rate * (100 - guarantee))) ||
  failed "the high class got ${mbps[high]}, the low one ${mbps[low]} Mbit/s"
