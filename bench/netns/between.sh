# between.sh: what the benchmarks between two hosts (network namespaces a and b) have in common. To be sourced, behind
# usage() and these tables:
#
#   takes  option -> the variable that gets its value
#   sets   option without a value -> VARIABLE=VALUE
#
# Errors:  `wrong` ends with exit code 2, `failed` with 1 and the logs in $work.
# Source:  ss(8), tc-htb(8).
# shellcheck shell=bash

source "$(dirname "${BASH_SOURCE[0]}")/../../common/netns/netns.sh"
# shellcheck disable=SC2034  # The scripts read them.
control_port=5000 plugin='' net_bench=''

wrong() {
  echo "${0##*/}: $*" >&2
  exit 2
}

failed() {
  cat "$work"/*.log
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

find_net_bench() {
  local candidate
  for candidate in "$(dirname "$0")/net_bench" bazel-bin/bench/net_bench/net_bench; do
    [[ -n $net_bench || ! -x $candidate ]] || net_bench=$candidate
  done
  [[ -x $net_bench ]] || wrong "no net_bench found: give --net-bench PATH"
}

# enter ARGUMENT...: goes on in namespaces of our own, with the script's arguments; a folder $work is there from now on.
enter() {
  netns_require ss awk
  netns_enter "$0" "$@"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
}

# join_hosts [ipv6]: hosts a and b with a link between them, eth0 at both; with IPv6 addresses too where it says so.
join_hosts() {
  netns_add a b
  netns_link a eth0 b eth0
  netns_address a eth0 10.0.0.1/24 ${1:+fd00::1/64}
  netns_address b eth0 10.0.0.2/24 ${1:+fd00::2/64}
}

# burst MBIT: what a shaper of that rate may send at once, in bytes: 10 ms, and two of the largest packets (64 KiB, cut by
# the device) at least. It makes up for one that wakes late, as on a machine that others use too.
burst() {
  echo $(($1 * 1250 > 131072 ? $1 * 1250 : 131072))
}

wait_until_listening() {
  local try
  for ((try = 0; try < 200; ++try)); do
    [[ -z $(netns_run b ss -tlnH "sport = :$1") ]] || return 0
    sleep 0.05
  done
  failed "nobody listens at port $1"
}

# Far more messages than there is time for: one sample that does not end.
endless=(--mode bandwidth -n 100000000 -w 0 --samples 1 --budget 3600 --phase any --no-priority)

still_running() {
  kill -0 "$1" 2>/dev/null || failed "net_bench ended early"
}

# Bytes that b has acknowledged, of each flow to it that is not the benchmark's own: "ADDRESS PORT BYTES" of a's ends.
acknowledged() {
  netns_run a ss -tinHO state established "dport != :$control_port" |
    awk '{ local = $3; port = local; sub(/.*:/, "", port); sub(/:[^:]*$/, "", local); sub(/%.*/, "", local)
           gsub(/[][]/, "", local)
           if (match($0, /bytes_acked:[0-9]+/)) print local, port, substr($0, RSTART + 12, RLENGTH - 12) }'
}

acknowledged_in_all() {
  acknowledged | awk '{ sum += $3 } END { printf "%.0f", sum }'
}

# What the plugin said of its mode and its connections, as comments.
say_connections() {
  grep -ho 'NET/.*\(mode\|send device\).*' "$work"/*a.log | sort -u | sed 's/^/# /' || true
}

congestion_name() {
  echo "${1:-$(netns_run a sysctl -n net.ipv4.tcp_congestion_control)}"
}
