#!/bin/bash
# paths.sh: net_bench between two hosts (network namespaces) whose network has several paths, or limits each flow: what
# share of it the plugin finds by itself, and how soon.
#
#   bench/netns/paths.sh --plugin PATH --paths SPEC | --per-flow MBIT --link MBIT | --one-path [options]
#
# Each flow goes by the path that its source port hashes to, and shares it with the other flows there. The plugin does
# not know how many paths there are; --lanes-by-turns compares what it finds with fixed numbers.
#
# Units:   Mbit/s; limits are of frames as the wire has them (14 + 20 + 32 bytes of headers in each frame), throughput
#          is payload that was acknowledged (tcpi_bytes_acked), shares are of the sum of the limits.
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces or
#          has no tc, nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk. Leaves nothing.
# Source:  unshare(1), tc-htb(8), nft(8), ss(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: paths.sh --plugin PATH --paths SPEC | --per-flow MBIT --link MBIT | --one-path [options]

  --paths SPEC         the rate of each path, and later ones: RATES[@SECOND:RATES]...
                       200,200,200,200,200,200,200,200            eight paths
                       400,400,400,40@10:40,400,400,40@20:400,400,400,40
  --per-flow MBIT      each flow is limited to so much, and all of them to --link
  --one-path           a link without a limit
  --plugin PATH        the plugin's .so. Its defaults, with TCPX_HEAL=1, unless the environment says otherwise
  --lanes-by-turns L   instead of one run with the defaults: TCPX_LANES=N for each N of the list L (auto,2,5,...)
  --turns N            ... so many times (default 1)
  --connections N      processes that send at once (default 1)
  --one-sided          rma_bench's puts instead of net_bench's messages (docs/rma.md)
  --slow-receiver      the receiver runs a quarter of the time only
  --net-bench PATH     default: net_bench (rma_bench) next to the script, or as Bazel builds it with --config=opt
  --size SIZE          of the messages (default 1M)
  --window N           messages in flight (default 8)
  --seconds N          length (default 20, or 10 after the last change)
  --mtu N              of both hosts (default 9000)
  --series             each second

Everything else (TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
size=1M window=8 seconds='' mtu=9000 spec='' per_flow='' link='' one_path=0
lanes='' turns=1 connections=1 slow=0 series=0 one_sided=0
declare -A sets=([--one-path]=one_path=1 [--slow-receiver]=slow=1 [--series]=series=1
  [--one-sided]=one_sided=1)
declare -A takes=([--paths]=spec [--per-flow]=per_flow [--link]=link [--plugin]=plugin [--lanes-by-turns]=lanes
  [--turns]=turns [--connections]=connections [--net-bench]=net_bench [--size]=size [--window]=window
  [--seconds]=seconds [--mtu]=mtu)
read_options "$@"
if [[ -n $spec ]]; then
  [[ $spec =~ ^[0-9]+(,[0-9]+)*(@[0-9]+:[0-9]+(,[0-9]+)*)*$ ]] || wrong "--paths takes RATES[@SECOND:RATES]..."
elif [[ -n $per_flow ]]; then
  [[ $per_flow$link =~ ^[0-9]+$ && -n $link ]] || wrong "--per-flow and --link take Mbit/s"
else
  ((one_path)) || wrong "one of --paths, --per-flow and --one-path is needed"
fi
require_plugin
if ((one_sided)); then
  find_net_bench rma_bench
  what=(--library "$plugin" --alone)
else
  find_net_bench
  what=(--plugin "$plugin")
fi
IFS=@ read -ra steps <<<"$spec"
last_change=0
for step in "${steps[@]:1}"; do last_change=${step%%:*}; done
seconds=${seconds:-$((last_change > 0 ? last_change + 10 : 20))}

netns_enter "$0" "$@"

limit() {
  local i rates
  IFS=, read -ra rates <<<"$1"
  for ((i = 0; i < ${#rates[@]}; ++i)); do netns_rate a eth0 $((i + 1)) "${rates[i]}"; done
}

shape() {
  local i first
  ((!one_path)) || return 0
  netns_classes a eth0
  if [[ -n $per_flow ]]; then
    # So many classes that flows seldom share one.
    tc -n a class add dev eth0 parent 1: classid 1:fffe htb rate "${link}mbit" burst 1mb cburst 1mb quantum 60000
    for ((i = 0; i < 512; ++i)); do
      echo "class add dev eth0 parent 1:fffe classid $(netns_number $((i + 1))) htb rate 1mbit ceil ${per_flow}mbit" \
        "burst 64kb cburst 128kb quantum 9000"
    done | tc -n a -batch -
    netns_hash a eth0 512 tcp dport != "$control_ports"
    return
  fi
  IFS=, read -ra first <<<"${steps[0]}"
  limit "${steps[0]}"
  netns_hash a eth0 ${#first[@]} tcp dport != "$control_ports"
}

start() {
  local i port
  names=()
  for ((i = 0; i < connections; ++i)); do
    port=$((control_port + i))
    names+=("$i")
    serve "$i" "$port" "${what[@]}" --no-priority
    drive "$i" "10.0.0.2:$port" "${what[@]}" "${endless[@]}" --yield -b "$size" --window "$window" --verbose
  done
}

# The receiver, and what it has started, runs 10 ms of 40.
hold_receiver() {
  local pid=$1 all
  all=$(cat /proc/"$pid"/task/*/children)
  # shellcheck disable=SC2086  # Several.
  while kill -STOP "$pid" $all 2>/dev/null; do
    sleep 0.03
    kill -CONT "$pid" $all 2>/dev/null || return 0
    sleep 0.01
  done
}

report() {
  awk -v spec="$spec" -v per_flow="$per_flow" -v link="$link" -v seconds="$seconds" -v series="$series" \
    -v control="$control_port" -v connections="$connections" '
    function sum_at(t,    i) {
      for (i = parts; i > 1 && t < part_at[i]; --i);
      return sum[i]
    }
    function mean(from, to,    i, bytes, room, time) {
      for (i = 1; i <= looks; ++i) if (at[i] - wide[i] >= from - 0.05 && at[i] <= to + 0.05) {
        bytes += sent[i]; room += wide[i] * sum_at(at[i] - wide[i] / 2); time += wide[i] }
      if (time == 0) return 0
      return room > 0 ? 8 * bytes / 1e6 / room : 8 * bytes / 1e6 / time
    }
    BEGIN {
      parts = split(spec, part, "@")
      if (parts == 0) { parts = 1; sum[1] = per_flow != "" ? link : 0 }
      for (i = 1; i <= parts && spec != ""; ++i) {
        text = part[i]
        part_at[i] = i > 1 ? text + 0 : 0
        if (i > 1) sub(/^[0-9]+:/, "", text)
        n = split(text, rate, ",")
        for (k = 1; k <= n; ++k) sum[i] += rate[k]
      }
    }
    $2 >= control && $2 < control + connections { next }
    $1 != now { end_look(); now = $1 }
    { key = $2 " " $3; grown = $4 - last[key]; if (grown > 0) { delta += grown; of[$2] += grown; last[key] = $4 }
      if (grown > 65536) ++busy }
    function end_look(    time) {
      if (now == "") return
      if (began == 0 && delta > 1e6) { began = now }
      time = now - began
      if (began > 0 && before != "") { ++looks; at[looks] = time; wide[looks] = now - before; sent[looks] = delta
        flows[looks] = busy
        if (time > 5) for (d in of) late[d] += of[d] }
      before = now; delta = 0; busy = 0; delete of
    }
    END {
      end_look()
      if (series) for (s = 0; s < seconds; ++s) {
        n = c = 0
        for (i = 1; i <= looks; ++i) if (at[i] > s && at[i] <= s + 1) { n += flows[i]; ++c }
        printf "%4d s  %6.3f  %.1f flows\n", s, mean(s, s + 1), c ? n / c : 0
      }
      n = c = 0
      for (i = 1; i <= looks; ++i) if (at[i] > seconds - 3) { n += flows[i]; ++c }
      printf "all %.3f, from second 5 on %.3f%s", mean(0, seconds), mean(5, seconds), sum[1] ? "" : " (Mbit/s)"
      for (i = 2; i <= parts; ++i) printf ", %d to %d s %.3f", part_at[i] + 5, i < parts ? part_at[i + 1] : seconds,
        mean(part_at[i] + 5, i < parts ? part_at[i + 1] : seconds)
      all_flows = 0
      for (key in last) all_flows += last[key] > 65536 ? 1 : 0
      printf "; %.1f busy flows in the end, %d in all", c ? n / c : 0, all_flows
      if (connections > 1) {
        total = 0
        for (d in late) { total += late[d] }
        printf "; parts"
        for (d in late) if (late[d] > 0.01 * total) printf " %.2f", late[d] / total * connections
      }
      printf "\n"
    }' "$scratch/flows"
}

measure() {
  local elapsed=0 step watcher
  rm -f "$scratch/stop"
  start
  netns_watch a "$scratch/stop" "dst 10.0.0.2" >"$scratch/flows" &
  watcher=$!
  if ((slow)); then
    sleep 1
    hold_receiver "${pid[0.b]}" &
  fi
  for step in "${steps[@]:1}"; do
    sleep $((${step%%:*} - elapsed))
    elapsed=${step%%:*}
    limit "${step#*:}"
  done
  sleep "$(awk -v s="$((seconds - elapsed))" 'BEGIN { print s + 0.5 }')"
  still_running 0
  touch "$scratch/stop"
  wait "$watcher"
  printf '%-8s %s: ' "${TCPX_LANES:-auto}" "$size"
  report
  grep -ho '[0-9]* bulk lanes to .*' "$scratch"/*/a.log | tail -3 | sed 's/^/#   /' || true
  stop "${names[@]}"
}

control_ports="$control_port-$((control_port + connections - 1))"
join_hosts "$mtu" 10.0.0.
shape
export TCPX_HEAL=${TCPX_HEAL:-1}
if [[ -z $lanes ]]; then
  measure
else
  for ((turn = 0; turn < turns; ++turn)); do
    for count in ${lanes//,/ }; do
      if [[ $count == auto ]]; then unset TCPX_LANES; else export TCPX_LANES=$count; fi
      [[ -n ${TCPX_LANES:-} ]] || unset NCCL_NSOCKS_PERTHREAD NCCL_SOCKET_NTHREADS
      control_port=$((control_port + connections))
      control_ports="$control_port-$((control_port + connections - 1))"
      measure
    done
  done
fi
