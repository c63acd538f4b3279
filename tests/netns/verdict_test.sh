#!/bin/bash
# verdict_test: faults are put into rings of four hosts, and the log of each rank that sees something names the culprit
# and the cause.
#
# Each rank sends on only what it has received, as in a collective, so that one fault stops all.
#
# environment: TCPX_TEST_LONG=1  all faults; without it one
#              VERDICT_ONLY=REGEX  those whose name matches
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_require ss
netns_enter "$0" "$@"
long=$((${TCPX_TEST_LONG:-0} == 1))
only=${VERDICT_ONLY:-.}
ring="h0 h1 h2 h3"
right=0 asked=0

# Four hosts on a switch.
hosts() {
  netns_add s h0 h1 h2 h3
  ip -n s link add br0 type bridge
  ip -n s link set br0 up
  local i
  for i in 0 1 2 3; do
    netns_link "h$i" eth0 s "to$i"
    ip -n s link set "to$i" master br0
    netns_address "h$i" eth0 "10.1.0.1$i/24"
  done
}

# begin NAME ENVIRONMENT...: a ring; false: this fault is not asked for.
begin() {
  [[ $1 =~ $only ]] || return 1
  ((long == 1)) || [[ " stopped " == *" $1 "* ]] || return 1
  asked=$((asked + 1))
  local own=() rank
  for rank in 0 1 2 3; do own+=("$rank:RANK=$rank"); done
  # shellcheck disable=SC2016
  start "$1" "$ring" "TCPX_STATS_SOCKET=$scratch/$1.%p" RING_CHAIN=1 TCPX_STALL_WARN=2 TCPX_PEER_TIMEOUT=120 TCPX_LANES=auto "${own[@]}" "${@:2}"
}

# names NAME RANK REGEX: waits until the rank's latest verdict matches.
names() {
  local file="$scratch/$1/verdict.$2.0" end=$((SECONDS + patience)) first latest
  while true; do
    latest=$(grep -h 'verdict: ' "$file" 2>/dev/null | tail -n 1) || true
    [[ ! $latest =~ $3 ]] || break
    if ((SECONDS >= end)); then
      cat "$file" "$scratch/$1/log.$2.0" 2>/dev/null || true
      fail "$1: rank $2 says \"$latest\", wanted /$3/"
      return 1
    fi
    sleep 0.1
  done
  first=$(grep -h 'verdict: ' "$file" | head -n 1)
  [[ $first =~ $3 ]] || echo "note: $1: rank $2 said first: ${first#*verdict: }"
  echo "ok: $1: rank $2: ${latest#*verdict: }"
}

# tcpx_top NAME REGEX RANK...: tools/tcpx_top --why says one culprit, by the numbers of these ranks.
tcpx_top() {
  local sockets=() rank end=$((SECONDS + patience)) said
  for rank in "${@:3}"; do sockets+=(--socket "$scratch/$1.${pid[$1.$rank]}"); done
  while true; do
    said=$(tools/tcpx_top --why "${sockets[@]}" | grep culprit: || true)
    [[ $(wc -l <<<"$said") != 1 || ! $said =~ $2 ]] || break
    ((SECONDS < end)) || { fail "$1: tcpx_top --why says \"$said\", wanted /$2/"; return; }
    sleep 0.2
  done
  echo "ok: $1: tcpx_top --why: $said"
}

# fails NAME REGEX RANK...: each of them fails, and its warning matches.
fails() {
  local rank failed=0
  for rank in "${@:3}"; do ended "$1" "$rank" error "WARN.*verdict: $2" || failed=1; done
  ((failed == 1)) || right=$((right + 1))
}

# all NAME REGEX RANK...: each of them.
all() {
  local rank failed=0
  for rank in "${@:3}"; do names "$1" "$rank" "$2" || failed=1; done
  ((failed == 1)) || right=$((right + 1))
}

# lasts NAME REGEX RANK...: what each of them says last still matches once the fault has stood for 20 s. On a machine
# that is full a rank may have come to say that it has no CPU, and is right.
lasts() {
  local rank latest
  while ((SECONDS < fault_began + 20)); do sleep 0.5; done
  for rank in "${@:3}"; do
    latest=$(grep -h 'verdict: ' "$scratch/$1/verdict.$rank.0" | tail -n 1)
    [[ ! $latest =~ verdict:\ no-cpu ]] || { echo "note: $1: rank $rank came to say: ${latest#*verdict: }" && continue; }
    [[ $latest =~ $2 ]] || fail "$1: rank $rank came to say \"$latest\", wanted /$2/"
  done
}

# flows_between A B: "bytes port port" of what host A sends host B on, most first.
flows_between() {
  netns_run "h$1" ss -tinHO state established dst "10.1.0.1$2" | awk '
    match($0, /bytes_acked:[0-9]+/) {
      split($3, local, ":"); split($4, peer, ":"); print substr($0, RSTART + 12, RLENGTH - 12), local[2], peer[2] }' |
    sort -rn
}
flow_between() { flows_between "$@" | awk 'NR == 1 { print $2, $3 }'; }

# swallow A B: one flow of data, both ways.
swallow() {
  read -r here there < <(flow_between "$1" "$2")
  netns_table "h$1" && netns_nft "h$1" "add rule inet netns losses tcp dport $here tcp sport $there drop"
  netns_table "h$2" && netns_nft "h$2" "add rule inet netns losses tcp dport $there tcp sport $here drop"
}

# blames_nobody NAME: no rank has named a process or a host, and none has failed.
blames_nobody() {
  local wrong='^WARN|verdict: (process|host|peer|internal)'
  ! grep -hE "$wrong" "$scratch/$1"/log.*.end || fail "$1: somebody is blamed"
}

heal_all() {
  local i
  for i in 0 1 2 3; do netns_heal "h$i" eth0; done
}

hosts

# A process is stopped, in each way of moving bytes.
stop() {
  local name=$1 rank=$2 others=(0 1 2 3)
  unset "others[$rank]"
  begin "$name" "${@:3}" || return 0
  kill -STOP "${pid[$name.$rank]}"
  all "$name" "process-stopped: .*waits for [^:]*rank $rank[^:]*: its process is stopped" "${others[@]}"
  ((${why:-0} == 0)) || tcpx_top "$name" "culprit: .*rank $rank\\) \\(process-stopped\\)" "${others[@]}"
  kill -CONT "${pid[$name.$rank]}"
  finish "$name" 0 1 2 3
}
why=1 stop stopped 0
stop stopped_threads 2 TCPX_THREADS=2
stop stopped_plain 3 TCPX_HEAL=0 TCPX_LANES=3

# A rank that posts no receive, or no send, for a while.
late() {
  local name=$1 rank=$2 way=$3 others=(0 1 2 3)
  unset "others[$rank]"
  begin "$name" "$rank:RING_HUSH=$way" "${@:4}" || return 0
  touch "$scratch/$name/hush"
  all "$name" "peer-late: [^:]*waits for [^:]*rank $rank[^:]*: " "${others[@]}"
  tcpx_top "$name" "culprit: .*rank $rank\\) \\(peer-late\\)" "${others[@]}"
  touch "$scratch/$name/speak"
  finish "$name" 0 1 2 3
}
late mute 1 receive
late mute_threads 0 receive TCPX_THREADS=2 TCPX_HEAL=0
late quiet 2 send
late quiet_threads 3 send TCPX_THREADS=2

# The network drops one flow.
begin flow TCPX_HEAL=0 && {
  swallow 0 1
  all flow 'flow-dropped: [^:]*waits for the path between [^:]*rank 0[^:]* and [^:]*rank 1' 0
  all flow 'flow-dropped: [^:]*the path between [^:]*rank 0[^:]* and [^:]*rank 1' 1 2 3
  right=$((right - 1))
  heal_all
  finish flow 0 1 2 3
}

# The same for longer than the timeout.
begin flow_fails TCPX_HEAL=0 TCPX_PEER_TIMEOUT=4 && {
  swallow 2 3
  fails flow_fails 'flow-dropped: the path between [^:]*rank 2[^:]* and [^:]*rank 3' 0 1 2 3
  heal_all
  finish flow_fails 0 1 2 3
}

# With healing the lane goes on, and what was found is told.
begin flow_heals && {
  swallow 1 2
  end=$((SECONDS + patience))
  until grep -q 'goes on' "$scratch/flow_heals/verdict.1.0" 2>/dev/null || ((SECONDS >= end)); do sleep 0.1; done
  finish flow_heals 0 1 2 3
  if grep -qE 'lane [0-9] to .*verdict: flow-dropped: the path between [^:]*rank 1[^:]* and [^:]*rank 2' "$scratch/flow_heals/log.1.end" &&
    grep -q 'goes on' "$scratch/flow_heals/log.1.end"; then
    right=$((right + 1))
  else
    cat "$scratch/flow_heals/log.1.end"
    fail "flow_heals: the lane is not told of"
  fi
  blames_nobody flow_heals
  heal_all
}

# A firewall resets one flow.
begin reset TCPX_HEAL=0 && {
  read -r here there < <(flow_between 3 0)
  netns_table h3
  netns_nft h3 "add rule inet netns losses tcp dport $here tcp sport $there reject with tcp reset"
  fails reset 'flow-dropped: the path between [^:]*rank [03][^:]* and [^:]*rank [03]' 0 1 2 3
  heal_all
  finish reset 0 1 2 3
}

# With healing the lane goes on with another socket, and nobody is blamed.
begin reset_heals && {
  read -r here there < <(flow_between 3 0)
  netns_table h3
  netns_nft h3 "add rule inet netns losses tcp dport $here tcp sport $there reject with tcp reset"
  end=$((SECONDS + patience))
  while ((SECONDS < end)) && flows_between 3 0 | grep -q " $here $there$"; do sleep 0.1; done
  finish reset_heals 0 1 2 3
  if grep -q 'goes on' "$scratch/reset_heals/log.3.end"; then
    right=$((right + 1))
  else
    cat "$scratch/reset_heals/log.3.end"
    fail "reset_heals: the lane does not go on"
  fi
  blames_nobody reset_heals
  heal_all
}

# A firewall closes a port behind everybody's back: what listens there is not reached any more, and its host is.
begin blocked && {
  read -r here there < <(netns_run h0 ss -tlnH | awk '{ split($4, a, ":"); print a[2] }' | head -n 1) || true
  netns_table h1
  port=$(netns_run h1 ss -tnH state established src 10.1.0.11 dst 10.1.0.10 | awk '{ split($3, a, ":"); print a[2] }' |
    sort | uniq -c | sort -rn | awk '{ print $2; exit }')
  netns_nft h1 "add rule inet netns losses tcp dport $port drop"
  netns_table h0
  netns_nft h0 "add rule inet netns losses tcp sport $port drop"
  all blocked 'flow-dropped: .*the path between [^:]*rank [01][^:]* and [^:]*rank [01]' 0 1 2 3
  heal_all
  finish blocked 0 1 2 3
}

# Nothing passes between a host and all others.
begin dropped && {
  netns_table h2
  netns_nft h2 "add rule inet netns losses ip saddr 10.1.0.0/24 drop"
  fault_began=$SECONDS
  all dropped 'host-gone: .*rank 2[^:]*: its host is gone, or cut off' 0 1 3
  tcpx_top dropped 'culprit: .*rank 2\) \(host-gone\)' 0 1 3
  lasts dropped 'host-gone: .*rank 2[^:]*: its host is gone, or cut off' 0 1 3
  heal_all
  finish dropped 0 1 2 3
}

# A cable out, at the host's end and behind the switch; and for longer than the timeout.
begin cable && {
  netns_cut h0 eth0
  fault_began=$SECONDS
  all cable 'path-dead: [^:]*rank 0[^:]*: the path is dead .interface eth0' 0
  all cable 'host-gone: .*rank 0[^:]*: its host is gone, or cut off' 1 2 3
  lasts cable 'path-dead: [^:]*rank 0[^:]*: the path is dead .interface eth0' 0
  lasts cable 'host-gone: .*rank 0[^:]*: its host is gone, or cut off' 1 2 3
  right=$((right - 1))
  netns_mend h0 eth0
  finish cable 0 1 2 3
}
begin switch && {
  ip -n s link set to3 nomaster
  all switch 'host-gone: .*rank 3[^:]*: its host is gone, or cut off' 0 1 2
  ip -n s link set to3 master br0
  finish switch 0 1 2 3
}
begin host_gone TCPX_PEER_TIMEOUT=4 TCPX_STALL_WARN=20 && {
  ip -n s link set to1 nomaster
  fails host_gone 'host-gone: [^:]*rank 1[^:]*: its host is gone, or cut off' 0 2 3
  ip -n s link set to1 master br0
  finish host_gone 0 1 2 3
}

# A process is killed.
die() {
  local name=$1 rank=$2 others=(0 1 2 3)
  unset "others[$rank]"
  begin "$name" "${@:3}" || return 0
  if [[ $name == *stopped* ]]; then
    kill -STOP "${pid[$name.$rank]}"
    for i in "${others[@]}"; do names "$name" "$i" 'process-stopped: ' || true; done
  fi
  kill -KILL "${pid[$name.$rank]}"
  fails "$name" "process-gone: [^:]*rank $rank[^:]*: its process is gone" "${others[@]}"
  tcpx_top "$name" "culprit: .*rank $rank\\) \\(process-gone\\)" "${others[@]}"
  finish "$name" "${others[@]}"
}
die killed 0 TCPX_HEAL=0
die killed_healing 2
# With questions in its health socket that it has not read.
die killed_stopped 1
die killed_stopped_threads 3 TCPX_THREADS=2 TCPX_HEAL=0

# The path from one rank to the next loses packets.
begin loss && {
  netns_lose h1 20 ip saddr 10.1.0.10 tcp dport != 0
  all loss 'path-loses: the path between [^:]*rank 0[^:]* and [^:]*rank 1[^:]*: the path loses packets .[0-9.]+ % of' 0
  tcpx_top loss 'culprit: the path between .*rank 0\) and .*rank 1\) \(path-loses\)' 0
  heal_all
  finish loss 0 1 2 3
}

# Of the paths between two ranks one has a tenth of what its sisters have.
begin tenth TCPX_LANES=4 TCPX_STALL_WARN=1 && {
  mapfile -t ports < <(flows_between 0 1 | awk '{ print $2 }')
  for port in "${ports[@]}"; do netns_class h0 eth0 80mbit tcp sport "$port"; done
  sleep 1
  mapfile -t ports < <(flows_between 0 1 | awk 'NR <= 3 { print $2 }')
  netns_heal h0 eth0
  netns_class h0 eth0 80mbit tcp sport "${ports[0]}"
  netns_class h0 eth0 8mbit tcp sport "${ports[1]}"
  netns_class h0 eth0 80mbit tcp sport "${ports[2]}"
  all tenth 'path-slow: the path between [^:]*rank 0[^:]* and [^:]*rank 1' 0
  tcpx_top tenth 'culprit: the path between .*rank 0\) and .*rank 1\) \(path-slow\)' 0
  heal_all
  finish tenth 0 1 2 3
}

# A thread without CPU: it may run when nobody else wants to, and somebody always does.
begin no_cpu TCPX_STALL_WARN=1 && {
  hogs=()
  trap 'kill "${hogs[@]}" 2>/dev/null || true; rm -rf "$scratch" || true' EXIT
  for _ in 1 2 3; do
    taskset -c 0 sh -c 'while :; do :; done' &
    hogs+=($!)
  done
  taskset -apc 0 "${pid[no_cpu.1]}" >/dev/null
  chrt --idle -a -p 0 "${pid[no_cpu.1]}"
  all no_cpu 'no-cpu: [^:]*rank 1[^:]*: its threads get no CPU' 1
  kill "${hogs[@]}"
  hogs=()
  finish no_cpu 0 1 2 3
}

echo "$right of $asked named right"
exit $((failures > 0 || right < asked))
