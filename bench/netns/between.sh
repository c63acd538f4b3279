# between.sh: what the benchmarks between two hosts (network namespaces a and b) have in common. To be sourced, after
# usage() and these tables:
#
#   takes  option -> the variable that gets its value
#   sets   option without a value -> VARIABLE=VALUE
#
# Errors:  `wrong` ends with exit code 2, `failed` with 1 and the logs of all that was started.
# Source:  ss(8).
# shellcheck shell=bash

source "$(dirname "${BASH_SOURCE[0]}")/../../common/netns/lab.sh"
# shellcheck disable=SC2034  # The scripts read them.
control_port=5000 plugin='' net_bench=''

wrong() {
  echo "${0##*/}: $*" >&2
  exit 2
}

failed() {
  cat "$scratch"/*/*.log 2>/dev/null || true
  echo "${0##*/}: $*"
  exit 1
}

read_options() {
  while (($#)); do
    if [[ $1 == -h || $1 == --help ]]; then
      usage
      printf '\nexit code: 0 done; 1 the benchmark or the plugin failed; 2 wrong usage\n'
      exit 0
    elif [[ -n ${sets[$1]:-} ]]; then
      printf -v "${sets[$1]%%=*}" %s "${sets[$1]#*=}"
      shift
    else
      [[ -n ${takes[$1]:-} ]] || wrong "unknown option $1 (--help lists them)"
      (($# > 1)) || wrong "$1 needs a value"
      printf -v "${takes[$1]}" %s "$2"
      shift 2
    fi
  done
}

require_plugin() {
  [[ -r $plugin ]] || wrong "--plugin takes the path of the plugin's .so"
}

# find_net_bench [PROGRAM]: net_bench, or another one that takes its place.
find_net_bench() {
  local candidate program=${1:-net_bench}
  for candidate in "$(dirname "$0")/$program" "bazel-bin/bench/$program/$program"; do
    [[ -n $net_bench || ! -x $candidate ]] || net_bench=$candidate
  done
  [[ -x $net_bench ]] || wrong "no $program found: give --net-bench PATH"
}

# join_hosts MTU NET...: hosts a and b with a link between them, eth0 at both; they have numbers 1 and 2 in each net.
join_hosts() {
  local host
  netns_pair eth0 "${@:2}"
  for host in a b; do ip -n "$host" link set eth0 mtu "$1"; done
}

# serve NAME PORT ARGUMENT...: net_bench listens on b. drive NAME ADDRESS:PORT ARGUMENT...: another one connects from a,
# or from `sender`. What they say is in $scratch/NAME; `front` is words in front of both.
front=()
serve() {
  launch "$1" b b -- "${front[@]}" "$net_bench" --listen "$2" "${@:3}"
  await netns_listens b "$2" || failed "nobody listens at port $2"
}
drive() { launch "$1" a "${sender:-a}" -- "${front[@]}" "$net_bench" --connect "$2" "${@:3}"; }

# stop NAME...: both sides of each.
stop() {
  local name who
  for name in "$@"; do
    for who in a b; do
      kill -CONT "${pid[$name.$who]}" 2>/dev/null || true
      kill -TERM "${pid[$name.$who]}" 2>/dev/null || true
    done
  done
  for name in "$@"; do wait "${pid[$name.a]}" "${pid[$name.b]}" 2>/dev/null || true; done
}

# Far more messages than there is time for: one sample that does not end.
endless=(--mode bandwidth -n 100000000 -w 0 --samples 1 --budget 3600 --phase any --no-priority)

# still_running NAME: its driver.
still_running() { ! has_ended "$1" a || failed "net_bench ended early"; }

# moves NAME COMMAND...: what the command says, while the driver lives; for await.
moves() {
  still_running "$1"
  "${@:2}"
}

# Bytes that b has acknowledged, of each flow to it that is not the benchmark's own: "ADDRESS PORT BYTES" of a's ends.
acknowledged() {
  netns_sent a "dport != :$control_port" |
    awk '{ local = $2; port = local; sub(/.*:/, "", port); sub(/:[^:]*$/, "", local); gsub(/[][]/, "", local)
           print local, port, $1 }'
}

acknowledged_in_all() {
  acknowledged | awk '{ sum += $3 } END { printf "%.0f", sum }'
}
acknowledged_beyond() { (($(acknowledged_in_all) >= $1)); }

# seconds_between FROM TO, mbps BYTES FROM TO: times of EPOCHREALTIME.
seconds_between() { awk -v a="$1" -v b="$2" 'BEGIN { print b - a }'; }
mbps() { awk -v b="$1" -v f="$2" -v t="$3" 'BEGIN { printf "%.0f", 8 * b / (t - f) / 1e6 }'; }

# What the plugin said of its mode and its connections, as comments.
say_connections() {
  grep -ho 'NET/.*\(mode\|send device\).*' "$scratch"/*/a.log | sort -u | sed 's/^/# /' || true
}

congestion_name() {
  echo "${1:-$(netns_run a sysctl -n net.ipv4.tcp_congestion_control)}"
}
