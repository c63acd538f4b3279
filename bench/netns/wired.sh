#!/bin/bash
# wired.sh: net_bench between two hosts (network namespaces) joined by wire, the relay with a named profile: delay,
# losses, paths and rates of networks that loopback does not show. `net_bench --wire PROFILE` starts it.
#
#   bench/netns/wired.sh --profile rack [--plugin PATH] [options] [-- ARGUMENTS OF NET_BENCH]
#
# Without a mode: one way, messages of 1 MiB, 1, 4 and 16 connections, bare sockets and the plugin. With a profile
# of several senders (incast) each of them drives connections to the same host, and what arrives there is measured.
#
# Units:   those of net_bench's columns; of incast Mbit/s with headers, as the wire counts what comes out.
# Errors:  exit code 0 done, 1 the benchmark or the plugin failed, 2 wrong usage. A machine that forbids namespaces or
#          has no /dev/net/tun: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, awk; 3 CPUs for figures that are the network's and not the
#          machine's: each driver spins, and the relay wants one. The last line tells how many frames the relay passed
#          on too late (behind_100us, behind_1ms). Leaves nothing.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: wired.sh --profile NAME [options] [-- ARGUMENTS]

  --profile NAME       rack, cloud, ecmp, lossy, wan or incast (`wire profiles` describes them)
  --plugin PATH        the plugin's .so; without it bare sockets only
  --set SETTINGS       overrides of the profile: "delay=1ms loss=1% rate=100M" (`wire --help` lists them)
  --net-bench PATH     default: net_bench next to the script, or as Bazel builds it with --config=opt
  --wire PATH          default: wire as Bazel builds it
  --flows LIST         of incast: connections of each sender (default 1,2)
  --seconds N          of incast: of each measurement, after one second to settle (default 5)

Everything else (TCPX_THREADS, TCPX_ENGINE, ...) comes from the environment.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
source "$(dirname "${BASH_SOURCE[0]}")/wire.sh"
profile='' overrides='' wire='' flows=1,2 seconds=5
declare -A sets=()
declare -A takes=([--profile]=profile [--plugin]=plugin [--set]=overrides [--net-bench]=net_bench [--wire]=wire
  [--flows]=flows [--seconds]=seconds)
ours=()
all=("$@")
while (($#)) && [[ $1 != -- ]]; do
  ours+=("$1")
  shift
done
(($# == 0)) || shift
arguments=("$@")
read_options "${ours[@]}"
[[ -n $profile ]] || wrong "--profile takes a name"
[[ -z $plugin ]] || require_plugin
[[ $flows =~ ^[0-9]+(,[0-9]+)*$ ]] || wrong "--flows takes N[,N]..."
find_net_bench
wire_find "$wire"
[[ -n $(wire_senders_of "$profile") ]] || wrong "no profile $profile (wire profiles lists them)"
# The relay goes before the drivers, which spin; in a namespace of users only limits allow that.
ulimit -r 1 -e 40 2>/dev/null || true
netns_enter "$0" "${all[@]}"

plugin_options=(${plugin:+--plugin "$plugin"})
first_port=$control_port

# A line of this script, on stderr where net_bench prints JSON.
say() { if [[ " ${arguments[*]} " == *" --json "* ]]; then echo "$*" >&2; else echo "$*"; fi; }

# What the wire did meanwhile, to b and from it.
say_wire() {
  local line
  say "#"
  wire_ctl stats | while read -r line; do say "# wire: $line"; done
}

sweep() {
  # The defaults of a mode that was asked for are its own.
  local what=(--mode bandwidth -b 1M --conns 1,4,16)
  [[ " ${arguments[*]}" != *" --mode"* ]] || what=()
  serve wired "$first_port" "${plugin_options[@]}" --no-priority
  # A sample spans many round trips of every profile. Two drivers and the relay share the CPUs: that is no disturbance,
  # but drivers that only spin would make frames late.
  netns_run a "$net_bench" --connect "10.77.0.1:$first_port" --raw --phase any --no-priority --keep-disturbed \
    --yield --sample-ms 500 --samples 5 --budget 120 --note "wire: $described" "${what[@]}" \
    "${plugin_options[@]}" "${arguments[@]}"
}

# measure_incast raw|plugin FLOWS: sets mbps and lost.
measure_incast() {
  local what=(--raw) port=$first_port sender names=() before from to full
  [[ $1 == raw ]] || what=("${plugin_options[@]}")
  for sender in "${wire_senders[@]}"; do
    serve "$port" "$port" "${plugin_options[@]}" --no-priority
    drive "$port" "10.77.0.1:$port" "${what[@]}" "${endless[@]}" --yield -b 1M --conns "$2"
    names+=("$port")
    port=$((port + 1))
  done
  first_port=$port
  sleep 1
  from=$EPOCHREALTIME before=$(wire_count b bytes) full=$(wire_count b full)
  sleep "$seconds"
  to=$EPOCHREALTIME
  mbps=$(mbps $(($(wire_count b bytes) - before)) "$from" "$to")
  lost=$(($(wire_count b full) - full))
  for port in "${names[@]}"; do still_running "$port"; done
  stop "${names[@]}"
}

incast() {
  local each bare bare_lost
  echo "# ${#wire_senders[@]} senders to one host, messages of 1M, $seconds s each; lost: segments that found no room"
  echo "  flows each  bare Mbit/s    lost  plugin Mbit/s    lost  ratio"
  for each in ${flows//,/ }; do
    measure_incast raw "$each"
    bare=$mbps bare_lost=$lost mbps=0 lost=0
    [[ -z $plugin ]] || measure_incast plugin "$each"
    awk -v n="$each" -v b="$bare" -v l="$bare_lost" -v p="$mbps" -v m="$lost" 'BEGIN {
      printf "%12d %12.0f %7d %14.0f %7d  %5.2f\n", n, b, l, p, m, (b > 0 ? p / b : 0) }'
  done
}

IFS=' ' read -ra settings <<<"$overrides"
options=()
for setting in "${settings[@]}"; do options+=("--${setting%%=*}" "${setting#*=}"); done
wire_up "$profile" "${options[@]}"
described=$("$wire_program" profiles | awk -v name="$profile" '$1 == name { $2 = "-"; print }')
described+=${overrides:+ with $overrides}
say "# wire: $described"
if ((${#wire_senders[@]} == 1)); then sweep; else incast; fi
say_wire
