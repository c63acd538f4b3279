#!/bin/bash
# verdict_test: faults are put into rings of four hosts, and all that is left names the same culprit and cause: the log
#               of
# each rank, and tcpx_top --why asked of each process.
#
# Each rank sends on only what it has received, as in a collective, so that one fault stops all. Where a rank can't
# know, as one that hears nobody, it is not asked, and a comment says why.
#
# environment: TCPX_TEST_LONG=1  all faults; without it three
#              VERDICT_ONLY=REGEX  those whose name matches
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"
long=$((${TCPX_TEST_LONG:-0} == 1))
# Longer than what a rank says next may be put off (stall_probe.h), so that no wrong verdict is left unheard.
hold=$((long == 1 ? 5 : 1))
# A log names what it waits for after 2, 4, 8, ... 64 s. On a busy machine "no-cpu" is true of all until then.
patience=$((2 * patience))
only=${VERDICT_ONLY:-.}
ring="h0 h1 h2 h3"
declare -A named wrong due
asked=0

# begin NAME ENVIRONMENT...: a ring; false: this fault is not asked for.
begin() {
  [[ $1 =~ $only ]] || return 1
  ((long == 1)) || [[ " stopped quiet killed " == *" $1 "* ]] || return 1
  asked=$((asked + 1))
  local own=() rank
  for rank in 0 1 2 3; do own+=("$rank:RANK=$rank"); done
  # shellcheck disable=SC2016
  start "$1" "$ring" "TCPX_STATS_SOCKET=$scratch/$1.%p" RING_CHAIN=1 TCPX_STALL_WARN=2 \
    TCPX_PEER_TIMEOUT=120 TCPX_LANES=auto "${own[@]}" "${@:2}"
}

# In words that do not change from run to run: "flow-dropped: the path between rank 0 and rank 1". Both ends of a path
# find it, and of several lines of one rank only the last matters.
plain() {
  sed -E 's/: .* waits for /: /; s/[^ ]+ pid [0-9-]+ \((rank [0-9])\)/\1/g
    s/(rank [1-3]) and (rank 0)$/\2 and \1/; s/(rank [23]) and (rank 1)$/\2 and \1/
    s/(rank 3) and (rank 2)$/\2 and \1/'
}

# in_log NAME RANK: all that the rank's log has named so far, in order.
in_log() {
  local file=$scratch/$1/log.$2
  [[ -e $file.end ]] && file=$file.end || file=$file.0
  sed -nE 's/.*verdict: ([a-z-]+): ([^:]*)(: .*)?$/\1: \2/p' "$file" 2>/dev/null | plain | uniq
}

# top NAME RANK: what tcpx_top --why says of the rank's process.
top() { tools/tcpx_top --why --socket "$scratch/$1.${pid[$1.$2]}" 2>&1 | sed -n 's/^culprit: //p'; }

# differs NAME WANTED RANK...: empty: the log of each of the ranks has named this last, and so does tcpx_top --why, in
# the same words for all.
differs() {
  local name=$1 wanted=$2 rank said first=""
  shift 2
  for rank in "$@"; do
    said=$(in_log "$name" "$rank" | tail -n 1)
    [[ $said == "$wanted" ]] || { echo "rank $rank's log: ${said:-nothing}" && return; }
  done
  for rank in "$@"; do
    said=$(top "$name" "$rank")
    [[ $(sed -E 's/(.*) \(([a-z-]+)\)$/\2: \1/' <<<"$said" | plain) == "$wanted" && $said == "${first:=$said}" ]] ||
      { echo "tcpx_top of rank $rank: ${said:-nothing}" && return; }
  done
}

# blames NAME WANTED RANK...: waits until each of the ranks, in its log and in tcpx_top --why, names this culprit and
# cause, and goes on doing so for `hold` seconds. What a rank named before it had the evidence is noted.
blames() {
  local name=$1 wanted=$2 rank other latest="" since="" begun=$SECONDS end=$((SECONDS + patience + hold))
  shift 2
  until [[ -n $since ]] && ((SECONDS - since >= hold)); do
    other=$(differs "$name" "$wanted" "$@")
    if [[ -z $other ]]; then
      since=${since:-$SECONDS}
    else
      [[ -z $since ]] || echo "note: $name: after $((SECONDS - begun)) s for a while: $other"
      since="" latest=$other
    fi
    if ((SECONDS >= end)); then
      wrong[$name]=1
      fail "$name: $latest; wanted \"$wanted\"" "$scratch/$name"/log.*.0
      return
    fi
    sleep 0.2
  done
  for rank in "$@"; do
    other=$(in_log "$name" "$rank" | head -n -1 | paste -sd ,)
    [[ -z $other ]] || echo "note: $name: rank $rank named before: $other"
  done
  named[$name]=1
  echo "ok: $name: rank ${*}: $wanted ($((SECONDS - begun)) s)"
}

# fails NAME WANTED RANK...: the same, and each of them fails with it; what it says after that is asked at the end, by
# `over`.
fails() {
  local rank
  for rank in "${@:3}"; do
    ended "$1" "$rank" error 'WARN.*verdict: ' || wrong[$1]=1
    due[$1.$rank]=$2
  done
  blames "$@"
}

# over NAME RANK...: the ring ends.
over() {
  local rank said
  finish "$@"
  for rank in "${@:2}"; do
    said=$(in_log "$1" "$rank" | tail -n 1)
    [[ -z ${due[$1.$rank]:-} || $said == "${due[$1.$rank]}" ]] ||
      { wrong[$1]=1 && fail "$1: rank $rank named last: $said"; }
  done
}

# ports_between A B: local ports of the flows that host A sends host B on, the busiest first.
ports_between() { netns_sent "h$1" dst "10.1.0.1$2" | awk '$1 > 0 { sub(/.*:/, "", $2); print $2 }'; }
# flow_between A B: sets `flow` to the busiest.
flow_between() { flow=$(netns_sent "h$1" dst "10.1.0.1$2" | awk 'NR == 1 { print $2, $3 }'); }

# swallow A B: one flow of data, both ways. reset A B: a firewall at A does that.
swallow() {
  flow_between "$1" "$2"
  netns_break drop "$flow" "h$1" "h$2"
}
reset() {
  flow_between "$1" "$2"
  netns_break 'reject with tcp reset' "$flow" "h$1"
}

# blames_nobody NAME: no rank has named a process or a host, and none has failed.
blames_nobody() {
  local blame='^WARN|verdict: (process|host|peer|internal)'
  ! grep -hE "$blame" "$scratch/$1"/log.*.end || { wrong[$1]=1 && fail "$1: somebody is blamed"; }
}

heal_all() {
  local i
  for i in 0 1 2 3; do netns_heal "h$i" eth0; done
}

# but RANK: the other ranks.
but() {
  local rank
  for rank in 0 1 2 3; do ((rank == $1)) || echo "$rank"; done
}

# Four hosts on a switch.
netns_switch s
for i in 0 1 2 3; do
  netns_add "h$i"
  netns_plug "h$i" eth0 s "10.1.0.1$i"
done

# A process is stopped, in each engine and mode.
stop() {
  local name=$1 rank=$2 other
  begin "$name" "${@:3}" || return 0
  kill -STOP "${pid[$name.$rank]}"
  # shellcheck disable=SC2046
  blames "$name" "process-stopped: rank $rank" $(but "$rank")
  # Without NCCL_DEBUG=INFO, too: no application means it.
  for other in $(but "$rank"); do
    grep -q '^WARN.*verdict: process-stopped' "$scratch/$name/log.$other".* ||
      { wrong[$name]=1 && fail "$name: rank $other has no WARN"; }
  done
  kill -CONT "${pid[$name.$rank]}"
  over "$name" 0 1 2 3
}
stop stopped 0
stop stopped_threads 2 TCPX_THREADS=2
stop stopped_plain 3 TCPX_HEAL=0 TCPX_LANES=3

# A rank that posts no receive, or no send, for a while. The former stalls nothing; the latter waits for what the
# others do not send, and comes to name itself.
late() {
  local name=$1 rank=$2 way=$3 waits
  mapfile -t waits < <(but "$rank")
  [[ $way != send ]] || waits+=("$rank")
  begin "$name" "$rank:RING_HUSH=$way" "${@:4}" || return 0
  touch "$scratch/$name/hush"
  blames "$name" "peer-late: rank $rank" "${waits[@]}"
  touch "$scratch/$name/speak"
  over "$name" 0 1 2 3
}
late mute 1 receive
late mute_threads 0 receive TCPX_THREADS=2 TCPX_HEAL=0
late quiet 2 send
late quiet_threads 3 send TCPX_THREADS=2

# The network drops one flow.
begin flow TCPX_HEAL=0 && {
  swallow 0 1
  blames flow 'flow-dropped: the path between rank 0 and rank 1' 0 1 2 3
  heal_all
  over flow 0 1 2 3
}

# The same for longer than the timeout.
begin flow_fails TCPX_HEAL=0 TCPX_PEER_TIMEOUT=4 && {
  swallow 2 3
  fails flow_fails 'flow-dropped: the path between rank 2 and rank 3' 0 1 2 3
  heal_all
  over flow_fails 0 1 2 3
}

# With healing the lane goes on before anything stalls, and only the end that moves it logs what was found.
begin flow_heals && {
  swallow 1 2
  says flow_heals 1 'goes on'
  over flow_heals 0 1 2 3
  if [[ $(in_log flow_heals 1) == 'flow-dropped: the path between rank 1 and rank 2' ]] &&
    grep -q 'goes on' "$scratch/flow_heals/log.1.end"; then
    named[flow_heals]=1
    echo "ok: flow_heals: rank 1: flow-dropped: the path between rank 1 and rank 2"
  else
    fail "flow_heals: the lane is not reported" "$scratch/flow_heals/log.1.end"
  fi
  blames_nobody flow_heals
  heal_all
}

# A firewall resets one flow.
begin reset TCPX_HEAL=0 && {
  reset 3 0
  fails reset 'flow-dropped: the path between rank 0 and rank 3' 0 1 2 3
  heal_all
  over reset 0 1 2 3
}

# With healing the lane goes on with another socket, and nobody is blamed: there is nothing to name.
begin reset_heals && {
  asked=$((asked - 1))
  reset 3 0
  flow_gone h3 "$flow"
  over reset_heals 0 1 2 3
  grep -q 'goes on' "$scratch/reset_heals/log.3.end" ||
    fail "reset_heals: the lane does not go on" "$scratch/reset_heals/log.3.end"
  blames_nobody reset_heals
  heal_all
}

# A firewall closes a port unnoticed: what listens there is not reached any more, and its host is.
begin blocked && {
  port=$(netns_run h1 ss -tnH state established src 10.1.0.11 dst 10.1.0.10 | awk '{ split($3, a, ":"); print a[2] }' |
    sort | uniq -c | sort -rn | awk '{ print $2; exit }')
  netns_drop h1 tcp dport "$port"
  netns_drop h0 tcp sport "$port"
  blames blocked 'flow-dropped: the path between rank 0 and rank 1' 0 1 2 3
  heal_all
  over blocked 0 1 2 3
}

# Nothing passes between a host and all others. To the rank there all others are gone.
begin dropped && {
  netns_drop h2 ip saddr 10.1.0.0/24
  hold=20 blames dropped 'host-gone: rank 2' 0 1 3
  heal_all
  over dropped 0 1 2 3
}

# A cable out, at the host's end, which sees that; and beyond the switch, where the host can't know that it is itself
# who is cut off; and for longer than the timeout.
begin cable && {
  netns_cut h0 eth0
  blames cable 'path-dead: rank 0' 0
  hold=20 blames cable 'host-gone: rank 0' 1 2 3
  hold=0 blames cable 'path-dead: rank 0' 0
  netns_mend h0 eth0
  over cable 0 1 2 3
}
begin switch && {
  ip -n s link set h3-eth0 nomaster
  blames switch 'host-gone: rank 3' 0 1 2
  ip -n s link set h3-eth0 master bridge
  over switch 0 1 2 3
}
begin host_gone TCPX_PEER_TIMEOUT=4 TCPX_STALL_WARN=20 && {
  ip -n s link set h1-eth0 nomaster
  fails host_gone 'host-gone: rank 1' 0 2 3
  ip -n s link set h1-eth0 master bridge
  over host_gone 0 1 2 3
}

# A process is killed.
die() {
  local name=$1 rank=$2 others
  mapfile -t others < <(but "$rank")
  begin "$name" "${@:3}" || return 0
  if [[ $name == *stopped* ]]; then
    kill -STOP "${pid[$name.$rank]}"
    hold=0 blames "$name" "process-stopped: rank $rank" "${others[@]}"
  fi
  kill -KILL "${pid[$name.$rank]}"
  fails "$name" "process-gone: rank $rank" "${others[@]}"
  over "$name" "${others[@]}"
}
die killed 0 TCPX_HEAL=0
die killed_healing 2
# With questions in its health socket that it has not read.
die killed_stopped 1
die killed_stopped_threads 3 TCPX_THREADS=2 TCPX_HEAL=0

# The path from one rank to the next loses packets. All goes on, and only who sends again knows.
begin loss && {
  netns_lose h1 20 ip saddr 10.1.0.10 tcp dport != 0
  blames loss 'path-loses: the path between rank 0 and rank 1' 0
  heal_all
  over loss 0 1 2 3
}

# One path between two ranks has a tenth of the others' rate. All goes on, and only the sender knows, for as
# long as nothing else holds up the other paths.
begin tenth TCPX_LANES=4 TCPX_STALL_WARN=1 && {
  mapfile -t ports < <(ports_between 0 1)
  for port in "${ports[@]}"; do netns_class h0 eth0 40mbit tcp sport "$port"; done
  # Each must help now, and lane 0, which has the short messages, sends least.
  three_carry h0 10.1.0.11
  mapfile -t ports < <(ports_between 0 1)
  netns_heal h0 eth0
  netns_class h0 eth0 40mbit tcp sport "${ports[0]}"
  netns_class h0 eth0 4mbit tcp sport "${ports[1]}"
  netns_class h0 eth0 40mbit tcp sport "${ports[2]}"
  hold=0 blames tenth 'path-slow: the path between rank 0 and rank 1' 0
  heal_all
  over tenth 0 1 2 3
}

# starve HOGS THREAD...: threads without CPU: they may run when nobody else wants to, and somebody always does.
starve() {
  local thread count=$1
  hogs=()
  trap 'kill "${hogs[@]}" 2>/dev/null || true; rm -rf "$scratch" || true' EXIT
  for _ in $(seq "$count"); do
    taskset -c 0 sh -c 'while :; do :; done' &
    hogs+=($!)
  done
  for thread in "${@:2}"; do
    taskset -pc 0 "$thread" >/dev/null
    chrt --idle -p 0 "$thread"
  done
}
feed() {
  kill "${hogs[@]}"
  wait "${hogs[@]}" 2>/dev/null || true
  hogs=()
}

# Those of a whole process, but the one that answers tcpx_top. It goes on, slowly, and to others it looks as one that is
# stopped.
begin no_cpu TCPX_STALL_WARN=1 && {
  mapfile -t threads < <(grep -L tcpx-stats "/proc/${pid[no_cpu.1]}"/task/*/comm | cut -d / -f 5)
  starve 3 "${threads[@]}"
  blames no_cpu 'no-cpu: rank 1' 1
  feed
  over no_cpu 0 1 2 3
}

# Those that move the bytes of all lanes but the first. What stalls goes on in bursts, and after each it is a moment
# until all others name the same again.
begin no_cpu_threads TCPX_STALL_WARN=1 TCPX_THREADS=2 && {
  mapfile -t threads < <(grep -l tcpx-io "/proc/${pid[no_cpu_threads.1]}"/task/*/comm | cut -d / -f 5)
  starve 6 "${threads[@]}"
  blames no_cpu_threads 'no-cpu: rank 1' 1
  hold=0 blames no_cpu_threads 'no-cpu: rank 1' 0 1 2 3
  feed
  over no_cpu_threads 0 1 2 3
}

right=0
for name in "${!named[@]}"; do [[ -n ${wrong[$name]:-} ]] || right=$((right + 1)); done
echo "$right of $asked named right"
exit $((failures > 0 || right < asked))
