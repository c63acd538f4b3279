#!/bin/bash
# heal.sh: two hosts (network namespaces) send to each other, both ways, while their network loses interfaces, flows and
# sockets; and how long it takes to hear of a peer that is really gone.
#
#   bench/netns/heal.sh --plugin PATH [options]
#
# Every byte is checked (heal/stream.cc). A row is one measure, its bar, and whether it holds.
#
# Units:   as each row says; rates are of messages that arrived, both ways together.
# Errors:  exit code 0 every bar holds, 1 one does not, 2 wrong usage. A machine that forbids namespaces or has no tc,
#          nft or ss: a line "SKIPPED: reason".
# Needs:   root, or namespaces of one's own; iproute2, nftables, awk; a kernel with INET_DIAG_DESTROY for `kills`, with
#          connection tracking for `nat`. Leaves nothing.
# Source:  unshare(1), ss(8), nft(8).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: heal.sh --plugin PATH [options]

  --plugin PATH        the plugin's .so
  --cases LIST         fused   one of two fused interfaces out and in again, then the other
                       switch  the same at the peer alone, beyond a switch: here the link stays up
                       cable   the only cable out and in again
                       resets  a device on the path resets every flow, every 5 s
                       nat     a device on the path forgets idle flows
                       swallow one flow is dropped for good, both ways
                       kills   resets of random sockets of either end, as by ss -K, every 50 ms, in each mode and engine
                       gone    the peer is killed, aborts, its host is gone: healing on and off
                       (default: all)
  --seconds N          of resets and kills (default 60)
  --outage N           seconds (default 10)
  --rate MBIT          of each link, where it has one (default 200)
  --size BYTES         of every second message (default 262144)
  --window N           messages in flight each way (default 8)
  --timeline           all rates per 100 ms too, as comments
  --stream PATH        default: stream next to the script, or as Bazel builds it with --config=opt;
                       killer is next to it

Everything else (TCPX_LANES, TCPX_THREADS, ...) comes from the environment; TCPX_HEAL is set.
TEXT
}

source "$(dirname "${BASH_SOURCE[0]}")/between.sh"
cases=fused,switch,cable,resets,nat,swallow,kills,gone seconds=60 outage=10 rate=200 size=262144 window=8 timeline=0
stream=''
declare -A sets=([--timeline]=timeline=1)
declare -A takes=([--plugin]=plugin [--cases]=cases [--seconds]=seconds [--outage]=outage [--rate]=rate [--size]=size
  [--window]=window [--stream]=stream)
read_options "$@"
known='(fused|switch|cable|resets|nat|swallow|kills|gone)'
[[ $cases =~ ^$known(,$known)*$ ]] ||
  wrong "--cases takes a list, such as fused,kills"
[[ $seconds$outage$rate$size$window =~ ^[0-9]+$ ]] || wrong "numbers are whole"
require_plugin
for candidate in "$(dirname "$0")/stream" bazel-bin/bench/netns/heal/stream; do
  [[ -n $stream || ! -x $candidate ]] || stream=$candidate
done
[[ -x $stream ]] || wrong "no stream found: give --stream PATH"
killer=$(dirname "$stream")/killer
netns_enter "$0" "$@"

# row CASE MEASURE VALUE BAR: BAR is "<=2", ">=0.9", "=0" or "-".
row() {
  local holds
  holds=$(awk -v value="$3" -v bar="$4" 'BEGIN {
    number = bar; gsub(/[<>=]/, "", number)
    if (bar == "-") print "-"
    else if (value !~ /^[0-9.]+$/) print "FAILED"
    else if (bar ~ /^<=/) print (value + 0 <= number + 0 ? "ok" : "FAILED")
    else if (bar ~ /^>=/) print (value + 0 >= number + 0 ? "ok" : "FAILED")
    else print (value + 0 == number + 0 ? "ok" : "FAILED") }')
  [[ $holds != FAILED ]] || failures=$((failures + 1))
  printf '%-22s %-34s %10s %8s %s\n' "$1" "$2" "$3" "$4" "$holds"
}

# Cables between a and b, eth1 to ethN, each of the rate.
cables() {
  local i
  for ((i = 1; i <= $1; ++i)); do netns_pair "eth$i" "10.0.$i."; done
  [[ ${2:-} == unlimited ]] || shape "$1"
}

shape() {
  local i
  for ((i = 1; i <= $1; ++i)); do
    netns_shape a "eth$i" "${rate}mbit"
    netns_shape b "eth$i" "${rate}mbit"
  done
}

# The second cable has a switch in its middle.
switched() {
  cables 1 unlimited
  netns_switch s
  netns_plug a eth2 s 10.0.2.1
  netns_plug b eth2 s 10.0.2.2
  shape 2
}

# A host r between a and b.
routed() {
  netns_router r
  netns_table r
  netns_add a b
  netns_to_router a eth1 r 10.0.1.
  netns_to_router b eth1 r 10.0.2.
  shape 1
}

# start NAME ENVIRONMENT...: both ranks, until traffic flows.
start() {
  local host name=$1
  run=$scratch/$1
  shift
  for host in "a b" "b a"; do
    launch "$name" "${host% *}" "${host% *}" TCPX_HEAL=1 NCCL_SOCKET_FAMILY=AF_INET NCCL_SOCKET_IFNAME=eth "$@" -- \
      "$stream" --plugin "$plugin" --folder "$run" --name "${host% *}" --other "${host#* }" --size "$size" \
      --window "$window"
  done
  await moved_much || failed "nothing moves"
  sleep 1
  touch "$run/go"
}
moved_much() { (($(moved) >= 1000000)); }

moved() {
  cat "$run"/?.pulse 2>/dev/null | awk '{ if ($2 > most) most = $2 } END { printf "%.0f", most }'
}

# mean FROM TO: Mbit/s.
mean() {
  awk -v from="$1" -v to="$2" '
    $1 <= from { before[FILENAME] = $2 }
    $1 <= to { after[FILENAME] = $2 }
    END { for (file in after) sum += after[file] - before[file]; printf "%.1f", 8 * sum / (to - from) / 1e6 }' \
    "$run"/a.pulse "$run"/b.pulse
}

# regained FROM RATE: seconds from FROM until half a second of that rate begins.
regained() {
  awk -v from="$1" -v rate="$2" '
    $1 >= from { slot = int(($1 - from) * 10); bytes[slot] += $2 - last[FILENAME]; if (slot > most) most = slot }
    { last[FILENAME] = $2 }
    END {
      for (slot = 0; slot + 5 <= most; ++slot) {
        sum = 0
        for (i = slot; i < slot + 5; ++i) sum += bytes[i]
        if (8 * sum / 0.5 / 1e6 >= rate) { printf "%.1f", slot / 10; exit }
      }
      print "never"
    }' "$run"/a.pulse "$run"/b.pulse
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b > 0 ? a / b : 0) }'; }
after() { awk -v t="$1" -v s="$2" 'BEGIN { printf "%.3f", t + s }'; }

# finish NAME PAUSE: both stop; rows of what holds for all cases.
finish() {
  local name=$1 host errors=0 wrong_bytes=0 longest=0 how bytes wrong pause _
  touch "$run/stop"
  for host in a b; do
    patience=20 await has_ended "$name" "$host" || true
    kill -KILL "${pid[$name.$host]}" 2>/dev/null || true
    wait "${pid[$name.$host]}" 2>/dev/null || true
    how=hangs wrong=0 pause=0
    [[ ! -e $run/$host.result ]] || read -r how _ bytes wrong pause <"$run/$host.result"
    [[ $how == stopped ]] || errors=$((errors + 1))
    wrong_bytes=$((wrong_bytes + wrong))
    longest=$((pause > longest ? pause : longest))
  done
  row "$1" "errors" "$errors" "=0"
  row "$1" "wrong bytes" "$wrong_bytes" "=0"
  row "$1" "longest pause, ms" "$longest" "$2"
  if ((errors)); then grep -h ' WARN ' "$run"/?.log | sed 's/^/# /' || true; fi
  ((timeline == 0)) || awk -v name="$1" '
    !first { first = $1 }
    { slot = int(($1 - first) * 10); bytes[slot] += $2 - last[FILENAME]; last[FILENAME] = $2 }
    END { for (slot in bytes) printf "# %.1f s %.0f Mbit/s, %s\n", slot / 10, bytes[slot] * 80 / 1e6, name }' \
    "$run"/a.pulse "$run"/b.pulse | sort -k2n
}

# out NAME HOST DEVICE SHARE: an outage, and what it leaves of the rate.
out() {
  local from=$EPOCHREALTIME cut restored base
  sleep 3
  cut=$EPOCHREALTIME
  base=$(mean "$from" "$cut")
  row "$1" "before: Mbit/s" "$base" "-"
  netns_cut "$2" "$3"
  sleep "$outage"
  restored=$EPOCHREALTIME
  netns_mend "$2" "$3"
  sleep 6
  if [[ $4 == 0 ]]; then
    row "$1" "$3 back: goes on after, s" "$(regained "$restored" "$(ratio "$base" 2)")" "<=2"
  else
    row "$1" "$3 out: of what is left" \
      "$(ratio "$(mean "$(after "$cut" 2)" "$restored")" "$(ratio "$base" "$4")")" ">=0.9"
    row "$1" "$3 back: full rate after, s" \
      "$(regained "$restored" "$(awk -v b="$base" 'BEGIN { print 0.95 * b }')")" "<=2"
  fi
}

case_fused() {
  cables 2
  start fused TCPX_FUSE=eth1+eth2
  out fused a eth2 2
  out fused a eth1 2
  finish fused "<=2000"
}

case_switch() {
  switched
  start switch TCPX_FUSE=eth1+eth2
  out switch b eth2 2
  finish switch "<=2000"
}

case_cable() {
  cables 1
  start cable
  out cable b eth1 0
  finish cable "<=$(((outage + 2) * 1000))"
}

case_resets() {
  routed
  start resets
  local i
  for ((i = 0; i < seconds / 5; ++i)); do
    sleep 5
    netns_calm r
    netns_break 'reject with tcp reset' "$(netns_flows a)" r
  done
  sleep 2
  row resets "times" "$i" "-"
  finish resets "-"
}

case_nat() {
  routed
  netns_run r sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=2 \
    net.netfilter.nf_conntrack_tcp_timeout_max_retrans=2 net.netfilter.nf_conntrack_tcp_loose=0
  netns_nft r 'add counter inet netns forgotten; add rule inet netns passing ct state invalid counter name forgotten drop'
  start nat
  local i
  for i in 1 2; do
    sleep 2
    touch "$run/pause"
    sleep 8
    rm "$run/pause"
  done
  sleep 4
  row nat "packets of forgotten flows" \
    "$(netns_packets r forgotten)" ">=1"
  finish nat "<=3000"
}

case_swallow() {
  routed
  start swallow
  sleep 2
  netns_break drop "$(netns_sent a | awk 'NR == 1 { print $2, $3 }')" r
  sleep 8
  finish swallow "<=3000"
}

# kills_for SECONDS SEED: how many, on both hosts, one each 50 ms.
kills_for() {
  netns_run a "$killer" --seconds "$1" --every-ms 100 --seed "$2" >"$run/a.kills" &
  local first=$!
  sleep 0.05
  netns_run b "$killer" --seconds "$1" --every-ms 100 --seed "$2" >"$run/b.kills"
  wait "$first"
  awk '{ sum += $1 } END { print sum }' "$run"/?.kills
}

# Kills and peace by turns, ten seconds and five: a machine that is faster at times is so for both.
case_kills() {
  local mode name turn from count
  for mode in TCPX_THREADS=0 "TCPX_THREADS=2 TCPX_ENGINE=io_uring" "TCPX_THREADS=2 TCPX_ENGINE=epoll"; do
    local kills=0 killed=0 peace=0 turns=$(((seconds + 9) / 10))
    name="kills ${mode##*=}"
    [[ $mode != TCPX_THREADS=0 ]] || name="kills caller-driven"
    cables 1 unlimited
    # shellcheck disable=SC2086
    start "$name" $mode
    for ((turn = 1; turn <= turns; ++turn)); do
      from=$EPOCHREALTIME
      sleep 5
      peace=$(after "$peace" "$(mean "$from" "$EPOCHREALTIME")")
      from=$EPOCHREALTIME
      count=$(kills_for $((seconds < 10 ? seconds : 10)) "$turn")
      killed=$(after "$killed" "$(mean "$from" "$EPOCHREALTIME")")
      kills=$((kills + count))
      sleep 0.5
    done
    row "$name" "kills" "$kills" ">=$((seconds * 1000 / 60))"
    row "$name" "rate, of undisturbed" "$(ratio "$killed" "$peace")" ">=0.8"
    finish "$name" "-"
    netns_unplug
  done
}

# gone HOW HEAL: how long until rank a has an error, in seconds.
gone() {
  local since how time name="gone $1 $2" _
  cables 1
  start "$name" "TCPX_HEAL=$2" TCPX_PEER_TIMEOUT=4
  since=$EPOCHREALTIME
  case $1 in
    killed) kill -KILL "${pid[$name.b]}" ;;
    aborts) kill -TERM "${pid[$name.b]}" ;;
    host) netns_cut b eth1 ;;
  esac
  patience=30 await test -e "$run/a.result" || true
  how=hangs time=$since
  [[ ! -e $run/a.result ]] || read -r how time _ <"$run/a.result"
  kill -KILL "${pid[$name.a]}" "${pid[$name.b]}" 2>/dev/null || true
  wait "${pid[$name.a]}" "${pid[$name.b]}" 2>/dev/null || true
  [[ $how == error ]] || echo never
  [[ $how != error ]] || awk -v t="$time" -v s="$since" 'BEGIN { printf "%.2f", t - s }'
  netns_unplug
}

case_gone() {
  local how
  for how in killed aborts; do
    row gone "$how, healing off, s" "$(gone "$how" 0)" "-"
    row gone "$how, healing on, s" "$(gone "$how" 1)" "<=0.2"
  done
  local before
  before=$(gone host 0)
  row gone "host (TCPX_PEER_TIMEOUT=4), off, s" "$before" "-"
  row gone "host (TCPX_PEER_TIMEOUT=4), on, s" "$(gone host 1)" "<=$(after "$before" 1)"
}

echo "# links of $rate Mbit/s where limited; messages of $size and 4000 bytes by turns, $window in flight each way"
printf '%-22s %-34s %10s %8s %s\n' case measure value bar holds
for one in ${cases//,/ }; do
  "case_$one"
  netns_unplug
done
netns_end
