#!/bin/bash
# healing_gone_test: what is final and what is not. A network that refuses, forgets or swallows costs a connection
# nothing while something of the peer is heard; one that lets no byte through is reported, whatever heals meanwhile.
#
# environment: TCPX_TEST_LONG=1  each in all modes, and for longer
#              GONE_ONLY=REGEX   those whose words match
#              GONE_SLACK=1      every time is the bar itself, as in the long form; else thrice that, for machines that
#                                others use too
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
caller="TCPX_THREADS=0" ring="TCPX_THREADS=2 TCPX_ENGINE=io_uring" epoll="TCPX_THREADS=2 TCPX_ENGINE=epoll"
cases=("refused reset lane 1 $caller" "refused icmp lane 1 $ring" "refused reset health 5 $epoll"
  "refused icmp health 1 $caller" "large drop $caller" "large reset $ring" "shut $epoll" "forgotten 2 $ring"
  "starved 5 $ring" "unread $caller TCPX_MAX_RECVS=8" "again $epoll" "idle $caller")
if ((${TCPX_TEST_LONG:-0} == 1)); then
  # More at once would be the load that the slack is for.
  NETNS_AT_ONCE=${NETNS_AT_ONCE:-$(nproc)}
  GONE_SLACK=${GONE_SLACK:-1} GONE_RESETS=${GONE_RESETS:-130}
  GONE_LOSSES=${GONE_LOSSES:-10} GONE_PAUSE=${GONE_PAUSE:-3}
  cases=()
  for mode in "$caller" "$ring" "$epoll"; do
    for how in reset icmp; do
      for what in lane health; do
        for seconds in 1 5 20; do cases+=("refused $how $what $seconds $mode"); done
      done
    done
    for seconds in 2 10 60; do cases+=("forgotten $seconds $mode"); done
    for seconds in 1 5; do cases+=("starved $seconds $mode"); done
    cases+=("large drop $mode" "large reset $mode" "shut $mode" "again $mode" "unread $mode TCPX_MAX_RECVS=8"
      "idle $mode")
  done
fi
[[ $(uname -r) =~ ^([0-9]+)\.([0-9]+) ]] && kernel=$((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2]))
chosen=()
for one in "${cases[@]}"; do
  [[ $one =~ ${GONE_ONLY:-.} ]] || continue
  if ((kernel < 6015)) && [[ $one =~ ^(shut|forgotten (10|60)) ]]; then
    echo "SKIPPED: $one: Linux $(uname -r) can't probe a shut window each second (6.15 and later can)" >&2
    continue
  fi
  chosen+=("$one")
done
netns_enter_each "$0" "${chosen[@]}"
interface=eth1

netns_add a b
netns_router r
netns_table r
netns_to_router a eth1 r 10.1.0.
netns_to_router b eth1 r 10.2.0.
for host in a b; do netns_shape "$host" eth1 20mbit; done

# within NAME RANK REGEX COUNT SECONDS: the rank has said so that often in that time after `since`, by its own clock: on
# a busy machine this script looks seconds later.
within() {
  local log=$scratch/$1/log.$2.0 line at
  await has_lines "$log" "$3" "$4" || { fail "$1: rank $2 does not say '$3' $4 times" "$log"; return 0; }
  line=$(grep -nE -- "$3" "$log" | sed -n "$4s/:.*//p")
  at=$(sed -n "${line}p" "$scratch/$1/times.$2.0")
  check "$1: '$3' $4 times within $5 s" "$(took "$5" "$at")" "$(awk -v s="$since" -v t="$at" 'BEGIN { print t - s }') s"
}
has_lines() { (($(grep -cE -- "$2" "$1" 2>/dev/null || true) >= $3)); }
# took SECONDS [TIME]: 1 if TIME (now) is no more than SECONDS after `since`.
took() {
  awk -v s="$since" -v t="${2:-$(now)}" -v most="$1" -v slack="${GONE_SLACK:-3}" \
    -v scale="${TCPX_TEST_TIME_SCALE:-1}" 'BEGIN { print (t - s <= most * slack * scale) }'
}

# health_flow HOST: of those that it has dialled.
health_flow() {
  flow=''
  await has_health_flow "$1" || fail "no health socket of $1"
}
has_health_flow() {
  flow=$(netns_sent "$1" dst 10.2.0.0/16 | awk '{ least = $2 " " $3 } END { print least }') && [[ -n $flow ]]
}
# reset_flow HOST: `flow` gets a reset, as from somebody between.
reset_flow() { netns_run "$1" ss -K -tnH src "${flow% *}" dst "${flow#* }" >/dev/null; }

# refused HOW WHAT SECONDS ENVIRONMENT...: a lane, or the health socket, is reset while nothing new gets through.
refused() {
  local how='tcp reset' what=$2 name="refused $1 $2 $3 ${*: -1}"
  [[ $1 != icmp ]] || how='icmp type port-unreachable'
  start "$name" "a b" TCPX_HEAL=1 "${@:4}" || return 0
  if [[ $what == lane ]]; then busy_flow a; else health_flow a; fi
  netns_nft r "add rule inet netns passing tcp flags & (syn | ack) == syn reject with $how"
  reset_flow a
  says "$name" 0 "is lost and will be"
  sleep "$3"
  netns_calm r
  since=$(now)
  within "$name" 0 "goes on|is back" 1 1
  unharmed "$name"
}

# large drop|reset ENVIRONMENT...: no packet above 1,000 bytes gets through any more, and small ones do.
large() {
  local name="large $1 ${*: -1}" action=drop words='the path loses large packets' rank lines
  [[ $1 != reset ]] || action='reject with tcp reset' words='a middlebox resets flows'
  start "$name" "a b" TCPX_HEAL=1 TCPX_PEER_TIMEOUT=12 TCPX_STALL_WARN=2 "${@:2}" || return 0
  netns_nft r 'add counter inet netns dials'
  netns_nft r 'add rule inet netns passing tcp flags & (syn | ack) == syn counter name dials'
  netns_nft r "add rule inet netns passing meta length > 1000 $action"
  since=$(now)
  await any_says "$name" '^WARN.*none has moved a byte' || fail "$name: nobody warns" "$scratch/$name"/log.*.0
  check "$name: a warning within 10 s" "$(took 10)" "$(awk -v s="$since" -v t="$(now)" 'BEGIN { print t - s }') s"
  ended "$name" 0 error "WARN.*$words"
  ended "$name" 1 error "WARN.*$words"
  check "$name: error in time" "$(took 13.2)" "$(awk -v s="$since" -v t="$(now)" 'BEGIN { print t - s }') s"
  check "$name: dials" "$(netns_packets r dials) <= 4 * 20 * 14" "$(netns_packets r dials)"
  for rank in 0 1; do
    lines=$(wc -l <"$scratch/$name/log.$rank.0")
    check "$name: lines of rank $rank" "$lines <= 120" "$lines"
    ! grep -E 'verdict: peer-late' "$scratch/$name/log.$rank.0" || fail "$name: a wrong verdict"
  done
  finish "$name" 0 1
}
any_says() { grep -qsE -- "$2" "$scratch/$1"/log.?.0; }

# A receiver pauses, and one flow is dropped for good meanwhile.
shut() {
  local name="shut ${*: -1}"
  start "$name" "a b" TCPX_HEAL=1 1:RING_HUSH=receive "$@" || return 0
  touch "$scratch/$name/hush"
  await window_shut || fail "$name: no window shuts"
  netns_break drop "$flow" r
  # The pause has to outlast some of the kernel's probes of the window, whose times no fake clock moves.
  sleep 3
  touch "$scratch/$name/speak"
  goes_on "$name"
}
# Sets `flow` to one whose window is shut.
window_shut() {
  flow=$(netns_run a ss -tinoHO state established | awk '/persist/ { print $3, $4; exit }')
  [[ -n $flow ]]
}
# goes_on NAME: a message that was sent after `hush` had ended comes within 3 s.
goes_on() {
  comes_again "$1"
  unharmed "$1"
}
comes_again() {
  since=$(now)
  more "$1" 0 1
  check "$1: goes on within 3 s" "$(took 3)" "$(awk -v s="$since" -v t="$(now)" 'BEGIN { print t - s }') s"
}

# forgotten SECONDS: a receiver pauses, and all flows are forgotten meanwhile.
forgotten() {
  local name="forgotten $1 ${*: -1}" seconds=$1
  netns_nft r 'add rule inet netns passing ct state invalid drop'
  netns_run r sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=1 net.netfilter.nf_conntrack_tcp_loose=0 \
    2>/dev/null || netns_skip "forgotten: no connection tracking in this kernel"
  start "$name" "a b" TCPX_HEAL=1 0:RING_HUSH=receive 1:RING_HUSH=receive "${@:2}" || return 0
  netns_nft r 'add counter inet netns forgotten'
  netns_nft r 'insert rule inet netns passing ct state invalid counter name forgotten'
  touch "$scratch/$name/hush"
  sleep "$seconds"
  touch "$scratch/$name/speak"
  goes_on "$name"
  check "$name: a flow was forgotten" "$(netns_packets r forgotten) > 0" "$(netns_packets r forgotten)"
}

# starved SECONDS: all sockets are reset while neither process gets a new descriptor.
starved() {
  local name="starved $1 ${*: -1}" rank host
  # On a busy machine more than 15 s may pass until the script lets them go on.
  start "$name" "a b" TCPX_HEAL=1 TCPX_RECONNECT_TIMEOUT=60 "${@:2}" || return 0
  for rank in 0 1; do prlimit --pid "${pid[$name.$rank]}" --nofile=3:; done
  for host in a b; do netns_run "$host" ss -K -tnH state established sport != 0 >/dev/null; done
  sleep "$1"
  for rank in 0 1; do prlimit --pid "${pid[$name.$rank]}" --nofile=1024:; done
  comes_again "$name"
  finish "$name" 0 1
  for rank in 0 1; do
    ended "$name" "$rank" stopped '' || continue
    ! grep '^WARN' "$scratch/$name/log.$rank.0" | grep -v 'Too many open files' || fail "$name: another warning"
  done
}

# All flows are reset again and again, with credits under way and bytes unread. How many of the health socket are reset
# while they count depends on the machine.
unread() {
  local name="unread ${*: -1}" i host expects=' comes back again and again: '
  start "$name" "a b" TCPX_HEAL=1 "$@" || return 0
  for ((i = 0; i < ${GONE_RESETS:-40}; ++i)); do
    for host in a b; do
      netns_run "$host" ss -K -tnH state established sport != 0 >/dev/null
    done
    sleep 0.1
    # On a busy machine a lane needs longer than that for a byte, and "none has moved a byte" would be true.
    ((i % 4 != 3)) || more "$name" 0 1
  done
  unharmed "$name" 'is lost and will be resumed'
}

# The one bulk lane is dropped for good, again and again: each time that is noticed as soon as the first.
again() {
  local name="again ${*: -1}" i
  start "$name" "a b" TCPX_HEAL=1 TCPX_LANES=2 TCPX_STEER=0 "$@" || return 0
  for ((i = 1; i <= ${GONE_LOSSES:-6}; ++i)); do
    flow=$(netns_sent a dst 10.2.0.0/16 | awk 'NR == 1 { print $2, $3 }')
    netns_break drop "$flow" r
    since=$(now)
    within "$name" 0 'is lost and will be|is let go and will be' "$i" 1.5
    flow_gone a "$flow"
    more "$name" 0 1
    sleep "${GONE_PAUSE:-1}"
  done
  unharmed "$name" 'lane [0-9] goes on'
}

# The bulk lane is reset while nothing is to be sent, and no new connection gets through: what is sent then is an error.
idle() {
  local name="idle ${*: -1}"
  start "$name" "a b" TCPX_HEAL=1 TCPX_LANES=2 TCPX_STEER=0 TCPX_PEER_TIMEOUT=6 RING_CHAIN=1 0:RING_HUSH=send \
    1:RING_HUSH=send "$@" || return 0
  touch "$scratch/$name/hush"
  await nothing_moves "$name" || fail "$name: something is under way for ever"
  flow=$(netns_sent a dst 10.2.0.0/16 | awk 'NR == 1 { print $2, $3 }')
  netns_nft r 'add rule inet netns passing tcp flags & (syn | ack) == syn drop'
  reset_flow a
  says "$name" 0 "is lost and will be"
  touch "$scratch/$name/speak"
  since=$(now)
  ended "$name" 0 error 'WARN.*found no other socket'
  check "$name: error in time" "$(took 6.6)" "$(awk -v s="$since" -v t="$(now)" 'BEGIN { print t - s }') s"
  ended "$name" 1 error ''
  finish "$name" 0 1
}
# nothing_moves NAME: all is acknowledged, and no message has come for half a second: that none comes is no event.
nothing_moves() {
  local before
  before="$(count "$1" 0) $(count "$1" 1)"
  sleep 0.5
  [[ "$(count "$1" 0) $(count "$1" 1)" == "$before" ]] &&
    netns_run a ss -tnHO state established | awk '{ queued += $2 } END { exit queued > 0 || NR == 0 }'
}

netns_case
