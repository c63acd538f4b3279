#!/bin/bash
# shaped.sh: net_bench between two hosts (network namespaces) whose flows are limited, each to a rate of its own.
#
#   bench/netns/shaped.sh --plugin PATH|--raw --flows-shaped SPEC [options]
#
# A plugin that gives each flow a fixed share moves N times what the slowest flow does. This shows what it gets out of
# unequal flows, and how soon it follows when the limits move.
#
# Units:   Mbit/s of frames as the wire has them, Ethernet, IP and TCP headers included (14 + 20 + 32 bytes in each
#          frame). Throughput is payload that was acknowledged (tcpi_bytes_acked).
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces or
#          has no tc, nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk. Leaves nothing.
# Source:  unshare(1), tc-htb(8), nft(8), ss(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: shaped.sh --plugin PATH|--raw --flows-shaped SPEC [options]

  --flows-shaped SPEC  a limit in Mbit/s for each flow that carries bulk data, and later ones: RATES[@SECOND:RATES]...
                       1000,1000,1000,100                          three of 1 Gbit/s and one of 0.1
                       1000,1000,1000,100@5:100,1000,1000,1000     after 5 s the slow flow is another one
  --plugin PATH        the plugin's .so. It gets one lane more than there are limits: lane 0 carries small messages
                       (TCPX_LANES, NCCL_SOCKET_NTHREADS=1 and NCCL_NSOCKS_PERTHREAD unless set)
  --raw                instead of the plugin as many bare sockets, each with messages of its own: what machine and
                       shaper give at best
  --net-bench PATH     default: net_bench next to the script, or as Bazel builds it with --config=opt
  --size SIZE          of the messages (default 1M)
  --window N           messages in flight (default 8)
  --seconds N          length (default 5, or 5 after the last change)
  --interval MS        of the series that is shown (default 500); times are found to 100 ms
  --mtu N              of both hosts (default 9000)
  --congestion NAME    cubic, bbr, ... (default: the system's; for other plugins than this one only that)
  --summary            without the series

Everything else (TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
size=1M window=8 seconds= interval=500 mtu=9000 congestion= series=1 raw=0 spec=
declare -A sets=([--summary]=series=0 [--raw]=raw=1)
declare -A takes=([--flows-shaped]=spec [--plugin]=plugin [--net-bench]=net_bench [--size]=size [--window]=window
  [--seconds]=seconds [--interval]=interval [--mtu]=mtu [--congestion]=congestion)
read_options "$@"
[[ $spec =~ ^[0-9]+(,[0-9]+)*(@[0-9]+:[0-9]+(,[0-9]+)*)*$ ]] || wrong "--flows-shaped takes RATES[@SECOND:RATES]..."
((raw)) || require_plugin
find_net_bench

IFS=@ read -ra steps <<<"$spec"
IFS=, read -ra rates <<<"${steps[0]}"
flows=${#rates[@]}
last_change=0
for step in "${steps[@]:1}"; do
  IFS=, read -ra rates <<<"${step#*:}"
  ((${#rates[@]} == flows)) || wrong "each part of --flows-shaped has the same number of limits"
  ((${step%%:*} > last_change)) || wrong "the changes of --flows-shaped come in order of time"
  last_change=${step%%:*}
done
seconds=${seconds:-$((last_change + 5))}
((seconds > last_change)) || wrong "--seconds ends before the last change"

netns_enter "$0" "$@"

# Classes 1:1 to 1:N, and 1:ffff for all else.
classes() {
  local i
  netns_classes a eth0
  for ((i = 1; i <= flows; ++i)); do
    tc -n a class add dev eth0 parent 1: classid "$(netns_number "$i")" htb rate 100gbit burst 256kb quantum 60000
  done
}

limit() {
  local i rates
  IFS=, read -ra rates <<<"$1"
  for ((i = 1; i <= flows; ++i)); do netns_rate a eth0 "$i" "${rates[i - 1]}"; done
}

# A process writes down its number as /proc has it, which may be the one outside of the namespace.
front=(bash -c 'read -r pid _ </proc/self/stat; echo "$pid" >"$SEEN"; exec "$0" "$@"')

start() {
  export TCPX_LANES=${TCPX_LANES:-$((flows + 1))}
  export NCCL_SOCKET_NTHREADS=${NCCL_SOCKET_NTHREADS:-1} NCCL_NSOCKS_PERTHREAD=${NCCL_NSOCKS_PERTHREAD:-$((flows + 1))}
  # By socket: a namespace of one's own may not change the system's default.
  [[ -z $congestion ]] || export TCPX_CONGESTION=$congestion
  local what=(--plugin "$plugin") listen=(--plugin "$plugin")
  ((raw == 0)) || what=(--raw --conns "$flows" ${congestion:+--raw-cc "$congestion"}) listen=()
  SEEN=$scratch/b.pid serve shaped "$control_port" "${listen[@]}"
  SEEN=$scratch/a.pid drive shaped "10.0.0.2:$control_port" "${what[@]}" "${endless[@]}" -b "$size" --window "$window"
}

# The flows that carry the bulk: those that have sent more than 4 MiB. Prints their local ports.
bulk_ports() {
  acknowledged | awk '$3 > 4194304 { print $2 }' | sort -n
}

all_carry() {
  mapfile -t ports < <(bulk_ports)
  ((${#ports[@]} >= flows))
}

steer() {
  local i
  patience=20 await moves shaped all_carry || true
  ((${#ports[@]} == flows)) || failed "${#ports[@]} flows carry the bulk, $flows limits were given"
  for ((i = 1; i <= flows; ++i)); do netns_sort a eth0 "$i" tcp sport "${ports[i - 1]}"; done
}

# How long the threads of a host's process and of its children have waited for a CPU so far, in ms.
waited() {
  local pid
  pid=$(<"$scratch/$1.pid")
  for pid in "$pid" $(cat /proc/"$pid"/task/*/children); do cat /proc/"$pid"/task/*/schedstat; done |
    awk '{ wait += $2 } END { printf "%d", wait / 1e6 }'
}

# Reads the lines of netns_watch; prints the series and what came of each part of the specification.
report() {
  awk -v ports="${ports[*]}" -v spec="$spec" -v started="$started" -v step="$interval" -v series="$series" \
    -v mtu="$mtu" '
    function limits_at(t,    i) { for (i = parts; i > 1 && t < part_at[i]; --i); return i }
    function line(at, bytes,    i, text) {
      text = sprintf("%6.1f %9.0f   %5.3f  ", at, 8 * total[bytes] / span[bytes] / 1e6,
                     8 * total[bytes] / span[bytes] / 1e6 / sum[limits_at(at - 0.001)])
      for (i = 1; i <= flows; ++i) text = text sprintf(" %6.0f", 8 * lane[bytes, i] / span[bytes] / 1e6)
      print text
    }
    function mean(from, to,    i, bytes, time) {
      for (i = 1; i <= looks; ++i) if (at[i] - wide[i] >= from - 0.001 && at[i] <= to + 0.001) {
        bytes += sent[i]; time += wide[i] }
      return time > 0 ? 8 * bytes / time / 1e6 : 0
    }
    BEGIN {
      flows = split(ports, port, " ")
      parts = split(spec, part, "@")
      part_at[1] = 0
      for (i = 1; i <= parts; ++i) {
        text = part[i]
        if (i > 1) { part_at[i] = text + 0; sub(/^[0-9]+:/, "", text) }
        n = split(text, rate, ",")
        for (k = 1; k <= n; ++k) sum[i] += rate[k]
        limits[i] = text
      }
      for (i = 1; i <= flows; ++i) number[port[i]] = i
    }
    !($3 in number) { next }
    $1 != now { end_look(); now = $1 }
    { current[number[$3]] = $4 }
    function end_look(    i, time) {
      if (now == "") return
      time = now - started
      if (before != "") {
        ++looks
        at[looks] = time
        wide[looks] = time - before
        for (i = 1; i <= flows; ++i) {
          each[looks, i] = current[i] - last[i]
          sent[looks] += each[looks, i]
        }
      }
      before = time
      for (i = 1; i <= flows; ++i) last[i] = current[i]
    }
    END {
      end_look()
      if (series) print "seconds   Mbit/s   share   each flow, Mbit/s"
      for (k = 1; k <= looks; ++k) {
        total["now"] += sent[k]
        span["now"] += wide[k]
        for (i = 1; i <= flows; ++i) lane["now", i] += each[k, i]
        if (span["now"] * 1000 < step - 50) continue
        if (series) line(at[k], "now")
        delete total; delete span; delete lane
      }
      payload = (mtu - 52) / (mtu + 14)
      for (i = 1; i <= parts; ++i) {
        until = i < parts ? part_at[i + 1] : at[looks]
        back = -1
        # Half a second together: single looks of 100 ms are noise.
        for (k = 1; k <= looks && back < 0; ++k) {
          if (at[k] - part_at[i] < 0.5 || at[k] > until) continue
          if (mean(at[k] - 0.5, at[k]) >= 0.9 * sum[i]) back = at[k] - 0.5 - part_at[i]
        }
        settled = mean(part_at[i] + (i > 1 ? 2 : 1), until)
        printf "limits %s: %.0f Mbit/s, %.3f of their sum %d (%.3f of the payload that fits it)", limits[i], settled,
               settled / sum[i], sum[i], settled / sum[i] / payload
        if (i > 1) printf "; above 0.9 %s", back < 0 ? "never" : sprintf("after %.1f s", back)
        printf "\n"
      }
    }' "$scratch/flows"
}

join_hosts "$mtu" 10.0.0.
classes
start
steer
limit "${steps[0]#*:}"
sender_waited=$(waited a)
receiver_waited=$(waited b)
started=$EPOCHREALTIME
netns_watch a "$scratch/stop" "dst 10.0.0.2 and dport != :$control_port" >"$scratch/flows" &
elapsed=0
for step in "${steps[@]:1}"; do
  sleep $((${step%%:*} - elapsed))
  elapsed=${step%%:*}
  limit "${step#*:}"
done
sleep $((seconds - elapsed))
still_running shaped
sender_waited=$((($(waited a) - sender_waited) / seconds / 10))
receiver_waited=$((($(waited b) - receiver_waited) / seconds / 10))
say_connections
echo "# messages of $size, $window in flight, MTU $mtu," \
  "$(congestion_name "$congestion")," \
  "limits on frames with headers, throughput is payload"
echo "# while ready to run, waited for a CPU: sender $sender_waited % of the time, receiver $receiver_waited %"
report
