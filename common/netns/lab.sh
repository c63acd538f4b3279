# lab.sh: the network lab: hosts on one machine, networks between them, processes on them, and what must become of all
# that. For tests, benchmarks and tools. To be sourced; it sources the rest of this folder:
#
#   lab.sh      cases, waiting, failures, processes with an environment of their own
#   netns.sh    hosts, cables, switches, routers
#   packets.sh  rates, classes, hashed paths, losses, counters, flows
#
#   source common/netns/lab.sh
#   netns_enter "$0" "$@"              # the script starts anew, with networks of its own
#   netns_pair eth0 10.1.0.            # hosts a and b with a cable: 10.1.0.1 and 10.1.0.2
#   launch talk server b PORT=4000 -- some_server
#   await netns_listens b 4000 || fail "nobody listens" "$scratch/talk/server.log"
#   netns_cut a eth0
#   check "it says so" "$(grep -c gone "$scratch/talk/server.log") == 1"
#   netns_end
#
# Threads: none. Processes: all of a script's are in a process namespace of its own.
# Units:   seconds. Tests wait up to `patience`, which TCPX_TEST_TIME_SCALE stretches; they never sleep instead.
# Errors:  `fail` counts, and netns_end ends the script with exit code 1. What this machine can't do ends it as a skip,
#          with a line "SKIPPED: reason". A command that fails ends it as a failure (set -e).
# Cleaning up: nothing is made outside of the script's namespaces but $scratch, which goes when the script ends.
# shellcheck shell=bash

source "${BASH_SOURCE[0]%/*}/netns.sh"
source "${BASH_SOURCE[0]%/*}/packets.sh"

failures=0
# Far above what anything takes.
patience=$((60 * ${TCPX_TEST_TIME_SCALE:-1}))
# Not before netns_enter has started the script anew: it replaces that shell.
[[ ${NETNS_INSIDE:-} != 1 ]] || {
  exec {empty_pipe}<> <(:)
  scratch=$(mktemp -d)
  # In memory: ranks write there 50 times a second.
  mount -t tmpfs tmpfs "$scratch"
  trap 'umount --lazy "$scratch" && rmdir "$scratch" || true' EXIT
}

now() {
  local up _
  read -r up _ </proc/uptime
  echo "$up"
}

# await COMMAND...: until it succeeds. False when that takes longer than `patience`. Several scripts wait at the same
# time, and a process costs milliseconds: they try seldom, and between two tries they wait for a pipe that stays empty,
# which needs no process as sleep does.
await() {
  local end=$((SECONDS + patience))
  until "$@"; do
    ((SECONDS < end)) || return 1
    read -rt 0.1 -u "$empty_pipe" || true
  done
}

# fail WHAT [FILE...]: shows the files, and counts.
fail() {
  local what=$1
  shift
  (($# == 0)) || cat "$@" 2>/dev/null || true
  echo "FAILED: $what"
  failures=$((failures + 1))
}

# check NAME CONDITION [WHAT IS SEEN]: a condition of (( )).
check() {
  if (($2)); then echo "ok: $1${3:+ ($3)}"; else fail "$1 (${3:-$2 is false})"; fi
}

netns_end() { exit $((failures > 0)); }

# launch NAME WHO HOST WORD... -- COMMAND...: starts it on HOST, with the environment that the words say; "WHO:X=Y" is
# for that one only. Its process is ${pid[NAME.WHO]}, what it says goes to $scratch/NAME/WHO.log.
declare -A pid
launch() {
  local name=$1 who=$2 host=$3 own=()
  shift 3
  while [[ $1 != -- ]]; do
    [[ $1 =~ ^[a-z0-9]+: ]] || own+=("$1")
    [[ $1 != "$who":* ]] || own+=("${1#*:}")
    shift
  done
  shift
  mkdir -p "$scratch/$name"
  # Not netns_run: $! would be a shell between it and us.
  ip netns exec "$host" env "${own[@]}" "$@" >"$scratch/$name/$who.log" 2>&1 {empty_pipe}<&- &
  pid[$name.$who]=$!
}

# ended_well NAME WHO...: waits for all of them. False, with all that was said, unless each ends with exit code 0.
ended_well() {
  local name=$1 who rc=0
  shift
  for who in "$@"; do wait "${pid[$name.$who]}" || rc=$?; done
  ((rc == 0)) || cat "$scratch/$name"/*.log
  return "$rc"
}

# has_ended NAME WHO: true once it has.
has_ended() { ! kill -0 "${pid[$1.$2]}" 2>/dev/null; }

# logged NAME WHO REGEX [TIMES]: it has said so, and so many times if that is given.
logged() {
  local log=$scratch/$1/$2.log count
  count=$(grep -cE -- "$3" "$log" || true)
  ((count == ${4:-count} && count > 0)) || fail "$1: $2 has $count lines '$3'" "$log"
}

# netns_enter_each SCRIPT CASE...: netns_enter for each case, each in networks of its own, NETNS_AT_ONCE of them at the
# same time (default: three for each CPU). After its functions the script calls netns_case. The output of the cases
# comes in their order.
netns_enter_each() {
  local script=$1 one i said runs=() rc=0
  shift
  if [[ -n ${NETNS_CASE:-} ]]; then
    netns_enter "$script"
    return
  fi
  said=$(mktemp -d)
  for one in "$@"; do
    while (($(jobs -rp | wc -l) >= ${NETNS_AT_ONCE:-$((3 * $(nproc)))})); do wait -n || true; done
    NETNS_CASE=$one bash "$script" >"$said/${#runs[@]}" 2>&1 &
    runs+=($!)
  done
  for i in "${!runs[@]}"; do
    wait "${runs[i]}" || rc=1
    cat "$said/$i"
  done
  rm -rf "$said"
  exit "$rc"
}
netns_case() {
  # shellcheck disable=SC2086  # A function and its arguments.
  $NETNS_CASE
  netns_end
}
