# peers.sh: two ranks of peer, which send each other messages and check every byte. To be sourced after lab.sh.
#
#   device_a=0 device_b=1 peers NAME ENVIRONMENT...     # false, with both logs, unless all arrives
#   peers_run NAME ENVIRONMENT...                       # the same, counted in `failures`
#
# Variables: host_a, host_b (a, b); device_a, device_b (0); classes: of traffic; wrapper: words in front of both.
# What they said is in $scratch/NAME/a.log and b.log; environment for one of them only: "b:NAME=VALUE".
# shellcheck shell=bash

peer=tests/netns/peer
# What peer sends in each direction, on each communicator.
message_bytes=$((300 * 700 + 200 * 40000 + 24 * 1048576))
v4=NCCL_SOCKET_FAMILY=AF_INET
v6=NCCL_SOCKET_FAMILY=AF_INET6

peers() {
  start_peers "$@"
  ended_well "$1" a b
}
start_peers() {
  local name=$1 folder=$scratch/$1
  shift
  # shellcheck disable=SC2086  # Words.
  launch "$name" a "${host_a:-a}" "$@" -- ${wrapper:-} "$peer" "$folder" a b "${device_a:-0}" ${classes:-}
  # shellcheck disable=SC2086
  launch "$name" b "${host_b:-b}" "$@" -- ${wrapper:-} "$peer" "$folder" b a "${device_b:-0}" ${classes:-}
}

# b_is_refused NAME REGEX ENVIRONMENT...: b ends with that line. What a hears of it, and when, depends on how far it
# was: it may have been connected, may be refused for as long as it tries again, and waits for a peer that has not come.
b_is_refused() {
  start_peers "$1" "${@:3}"
  ! ended_well "$1" b >/dev/null || fail "$1: connected"
  kill "${pid[$1.a]}" 2>/dev/null || true
  wait "${pid[$1.a]}" 2>/dev/null || true
  logged "$1" b "^WARN.*$2"
  ! grep ' receive device ' "$scratch/$1/a.log" || fail "$1: a has a connection from b"
  [[ -z $(grep 'the peer failed: ' "$scratch/$1/a.log" | grep -vE "$2") ]] ||
    fail "$1: a heard otherwise" "$scratch/$1/a.log"
}
peers_run() { peers "$@" || fail "$1"; }
