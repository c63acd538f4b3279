# ring.sh: rings of ring_rank, and what becomes of them. To be sourced after lab.sh.
#
#   start NAME HOSTS ENVIRONMENT...     # one rank on each of HOSTS; returns when traffic flows
#   ... something happens ...
#   says NAME RANK REGEX                # waits until the rank's log has it
#   more NAME RANK...                   # waits until each of them has received some more messages
#   ended NAME RANK error REGEX         # waits; the rank's log must match
#   finish NAME RANK...                 # all that live stop; each must have gone in order
#   unharmed NAME [REGEX]               # of two ranks all this: more messages, and both stop as in good_end
#   good_end NAME [REGEX]               # both stop, in order and without a warning
#
# Threads: none. Units: seconds. Errors: counted in `failures`, with the rank's log.
# shellcheck shell=bash

ring_rank=tests/netns/ring_rank

# Ranks of NAME are processes ${pid[NAME.RANK]}; environment for one of them only: "1:NAME=VALUE".
start() {
  local name=$1 list=($2) rank
  shift 2
  for rank in "${!list[@]}"; do
    launch "$name" "$rank" "${list[rank]}" TCPX_LANES=3 "NCCL_SOCKET_IFNAME=${interface:-eth0}" "$@" -- \
      "$ring_rank" "$scratch/$name" "$rank" "${#list[@]}"
  done
  for rank in "${!list[@]}"; do
    await test -e "$scratch/$name/running.$rank.${round:-0}" && continue
    fail "$name: rank $rank never ran" "$scratch/$name"/*.log
    for rank in "${!list[@]}"; do kill -KILL "${pid[$name.$rank]}" 2>/dev/null || true; done
    return 1
  done
}

# says NAME RANK REGEX, ends NAME RANK: within `patience`, and the script goes on if not.
says() {
  local log=$scratch/$1/log.$2.${round:-0}
  await grep -qsE -- "$3" "$log" || fail "$1: rank $2 does not say '$3'" "$log"
}
ends() {
  local log=$scratch/$1/log.$2.${round:-0}
  await test -e "$scratch/$1/result.$2.${round:-0}" || ! fail "$1: rank $2 goes on for ever" "$log" "$scratch/$1/$2.log"
}

# count NAME RANK: messages received.
count() {
  local messages=0
  { read -r messages <"$scratch/$1/count.$2.${round:-0}"; } 2>/dev/null || true
  echo "${messages:-0}"
}
counts_beyond() { (($(count "$1" "$2") > $3)); }
more() {
  local name=$1 rank
  local -A before=()
  shift
  for rank in "$@"; do before[$rank]=$(count "$name" "$rank"); done
  for rank in "$@"; do
    # What was under way when something happened does not count: a window each of both ends.
    await counts_beyond "$name" "$rank" $((before[$rank] + 8)) || fail "$name: rank $rank receives no more"
  done
}

# ended NAME RANK error|stopped REGEX: also prints how long after `since` (a time of `now`) that was.
ended() {
  local name=$1 rank=$2 how=$3 regex=$4 log=$scratch/$1/log.$2.${round:-0} result seconds after _
  ends "$name" "$rank" || return 1
  read -r result seconds _ <"$scratch/$name/result.$rank.${round:-0}"
  if [[ $result != "$how" ]] || ! grep -qE "$regex" "$log"; then
    fail "$name: rank $rank: $result, wanted $how with /$regex/" "$log"
    return 1
  fi
  [[ ${brief:-0} == 0 ]] || return 0
  after=$(awk -v s="$seconds" -v t="${since:-0}" 'BEGIN { printf "%.2f", s - t }')
  echo "ok: $name: rank $rank $how${since:+ $after s after}"
}

# warnings_in FILE: how many, without the verdicts about transfers that are stalled, which may go on, and without those
# that a test expects: the regular expression `expects`.
warnings_in() {
  grep -cP "^WARN(?!.*( no progress for [0-9.]* s; verdict: ${expects:+|$expects}))" "$1" || true
}

# warnings NAME RANK COUNT
warnings() {
  local log=$scratch/$1/log.$2.${round:-0} count
  count=$(warnings_in "$log")
  [[ $count == "$3" ]] || fail "$1: rank $2 warned $count times, not $3" "$log"
}

finish() {
  local name=$1 rank rc
  touch "$scratch/$name/stop"
  shift
  for rank in "$@"; do
    rc=0
    wait "${pid[$name.$rank]}" || rc=$?
    ((rc == 0)) || fail "$name: rank $rank left with $rc" "$scratch/$name/$rank.log"
  done
}

unharmed() {
  more "$1" 0 1
  good_end "$@"
}
good_end() {
  local rank
  finish "$1" 0 1
  for rank in 0 1; do ended "$1" "$rank" stopped "${2:-}" && warnings "$1" "$rank" 0; done
}

# lane_flow HOST: "local peer" of one of the host's lanes. A health socket has moved next to nothing.
lane_flow() {
  netns_run "$1" ss -tinHO state established |
    awk -v seed="$RANDOM" '/bytes_(acked|received):[0-9][0-9][0-9][0-9][0-9]/ {
    gsub("%[a-z0-9]+", ""); flows[++n] = $3 " " $4 }
    END { srand(seed); if (n) print flows[int(rand() * n) + 1] }'
}
# busy_flow HOST: the same; sets `flow` once there is one.
busy_flow() {
  flow=''
  await has_busy_flow "$1" || fail "no flow of $1 carries anything"
}
has_busy_flow() { flow=$(lane_flow "$1") && [[ -n $flow ]]; }
# flow_gone HOST FLOW: waits until the host has it no more.
flow_gone() { await has_no_flow "$1" "$2" || fail "the flow $2 is still there"; }
has_no_flow() { [[ $'\n'$(netns_flows "$1")$'\n' != *$'\n'"$2"$'\n'* ]]; }

# three_carry HOST ADDRESS: waits until three flows to that address have sent 2 MB from now on.
three_carry() {
  await third_beyond "$1" "$2" $(($(third "$1" "$2") + 2000000)) || fail "a third lane of $1 does not help"
}
third() { netns_sent "$1" dst "$2" | awk 'NR == 3 { third = $1 } END { print third + 0 }'; }
third_beyond() { (($(third "$1" "$2") > $3)); }

# each_mode COMMAND...: once for each engine and mode, with two more arguments: its name, then its environment.
each_mode() {
  "$@" caller TCPX_THREADS=0
  "$@" io_uring TCPX_THREADS=2 TCPX_ENGINE=io_uring
  "$@" epoll TCPX_THREADS=2 TCPX_ENGINE=epoll
}
