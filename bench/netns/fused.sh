#!/bin/bash
# fused.sh: net_bench between two hosts (network namespaces) that have several links, each with a rate of its own, fused
# to one device by TCPX_FUSE.
#
#   bench/netns/fused.sh --plugin PATH --links RATES [options]
#
# Shows how much of the sum of the links one connection gets, and what each of them carried.
#
# Units:   Mbit/s of frames as the wire has them, Ethernet, IP and TCP headers included (14 + 20 or 40 + 32 bytes in
#          each frame). Throughput is payload that was acknowledged (tcpi_bytes_acked).
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces or
#          has no tc, nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk. Leaves nothing.
# Source:  unshare(1), tc-tbf(8), ss(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: fused.sh --plugin PATH --links RATES [options]

  --links RATES        a limit in Mbit/s for each link, such as 1000,1000 or 1000,250; up to 8 links
  --plugin PATH        the plugin's .so
  --one-subnet         all links share a subnet (default: each has its own)
  --ipv6               by IPv6 addresses (default: IPv4)
  --unfused            what the first link gives without TCPX_FUSE, with as many lanes
  --net-bench PATH     default: net_bench next to the script, or as Bazel builds it with --config=opt
  --size SIZE          of the messages (default 1M)
  --window N           messages in flight (default 8)
  --seconds N          length (default 5), after one second that does not count
  --mtu N              of all links (default 9000)
  --congestion NAME    cubic, bbr, ... (default: the system's)

Everything else (TCPX_LANES, TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
size=1M window=8 seconds=5 mtu=9000 congestion= one_subnet=0 ipv6=0 fused=1 links=
declare -A sets=([--one-subnet]=one_subnet=1 [--ipv6]=ipv6=1 [--unfused]=fused=0)
declare -A takes=([--links]=links [--plugin]=plugin [--net-bench]=net_bench [--size]=size [--window]=window
  [--seconds]=seconds [--mtu]=mtu [--congestion]=congestion)
read_options "$@"
[[ $links =~ ^[0-9]+(,[0-9]+){0,7}$ ]] || wrong "--links takes up to eight limits, such as 1000,1000"
require_plugin
find_net_bench
netns_enter "$0" "$@"

IFS=, read -ra rates <<<"$links"
count=${#rates[@]}

# address HOST_NUMBER LINK
address() {
  local net=$2 host=$1
  ((one_subnet == 0)) || { net=0; host=$(($1 * 10 + $2)); }
  if ((ipv6)); then echo "fd00:$net::$host"; else echo "10.0.$net.$host"; fi
}

# The control connection has a link of its own.
hosts() {
  local i host number=0
  netns_pair control 10.9.9.
  for host in a b; do
    number=$((number + 1))
    # What an operator must set where links share a subnet.
    netns_sysctls "$host" arp_ignore=1 arp_announce=2 rp_filter=2
    for ((i = 1; i <= count; ++i)); do
      ((number == 2)) || netns_link a "eth$i" b "eth$i"
      netns_address "$host" "eth$i" "$(address "$number" "$i")"
      ip -n "$host" link set "eth$i" mtu "$mtu"
      netns_shape "$host" "eth$i" "${rates[i - 1]}mbit"
    done
  done
  for host in a b; do
    for ((i = 1; i <= count; ++i)); do netns_settled "$host" "eth$i"; done
  done
}

start() {
  local names i
  names=$(for ((i = 1; i <= count; ++i)); do echo "eth$i"; done | paste -sd+)
  export NCCL_SOCKET_IFNAME="=${names//+/,}" NCCL_SOCKET_FAMILY=AF_INET
  ((ipv6 == 0)) || NCCL_SOCKET_FAMILY=AF_INET6
  if ((fused && count > 1)); then
    export TCPX_FUSE=$names
  else
    export TCPX_LANES=${TCPX_LANES:-$((count + 1))}
  fi
  [[ -z $congestion ]] || export TCPX_CONGESTION=$congestion
  serve fused "$control_port" --plugin "$plugin"
  drive fused "10.9.9.2:$control_port" --plugin "$plugin" "${endless[@]}" -b "$size" --window "$window"
}

report() {
  local addresses
  addresses=$(for ((i = 1; i <= count; ++i)); do address 1 "$i"; done | paste -sd,)
  awk -v addresses="$addresses" -v links="$links" -v span="$2" -v mtu="$mtu" -v ipv6="$ipv6" -v fused="$fused" '
    FNR == NR { before[$1, $2] = $3; next }
    { bytes[$1] += $3 - before[$1, $2]; total += $3 - before[$1, $2]; if ($3 - before[$1, $2] > 1e6) ++lanes[$1] }
    END {
      n = split(links, rate, ",")
      split(addresses, name, ",")
      for (i = 1; i <= n; ++i) {
        sum += rate[i]
        printf "link %d of %d Mbit/s: %.0f Mbit/s by %d lanes\n", i, rate[i], 8 * bytes[name[i]] / span / 1e6,
               lanes[name[i]]
      }
      if (!fused) sum = rate[1]
      payload = (mtu - 52 - 20 * ipv6) / (mtu + 14)
      mbps = 8 * total / span / 1e6
      printf "together: %.0f Mbit/s, %.3f of the sum %d (%.3f of the payload that fits it)\n", mbps, mbps / sum, sum,
             mbps / sum / payload
    }' "$scratch/before" "$1"
}

hosts
start
await moves fused acknowledged_beyond 4000000 || failed "nothing moves"
sleep 1
started=$EPOCHREALTIME
acknowledged >"$scratch/before"
sleep "$seconds"
ended=$EPOCHREALTIME
acknowledged >"$scratch/after"
still_running fused
say_connections
echo "# messages of $size, $window in flight, MTU $mtu," \
  "$(congestion_name "$congestion")," \
  "limits on frames with headers, throughput is payload"
report "$scratch/after" "$(seconds_between "$started" "$ended")"
