# ring.sh: rings of ring_rank, and what becomes of them. To be sourced behind netns.sh.
#
#   hosts                               # two, a and b, with a cable between them
#   start NAME HOSTS ENVIRONMENT...     # one rank on each of HOSTS; returns when traffic flows
#   ... something happens ...
#   ended NAME RANK error REGEX         # waits; the rank's log must match
#   finish NAME RANKS                   # all that live stop; each must have gone in order
#
# Threads: none. Units: seconds. Errors: counted in `failures`, with the rank's log.

ring_rank=tests/netns/ring_rank
# Not before netns_enter has started the script anew: it replaces that shell.
[[ ${NETNS_INSIDE:-} != 1 ]] || {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch" || true' EXIT
}
failures=0
# Far above what anything here takes.
patience=${NETNS_PATIENCE:-60}

now() { awk '{ print $1 }' /proc/uptime; }

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

hosts() {
  netns_add a b
  netns_link a eth0 b eth0
  netns_address a eth0 10.1.0.1/24
  netns_address b eth0 10.1.0.2/24
}

# await FILE [SECONDS]
await() {
  local end=$((SECONDS + ${2:-$patience}))
  while [[ ! -e $1 ]]; do
    ((SECONDS < end)) || return 1
    sleep 0.02
  done
}

# Ranks of `name` are processes ${pid[name.rank]}; environment for one of them only: "1:NAME=VALUE".
declare -A pid
start() {
  local name=$1 list=($2) rank word folder=$scratch/$1
  shift 2
  mkdir -p "$folder"
  for rank in "${!list[@]}"; do
    local own=(TCPX_LANES=3 "NCCL_SOCKET_IFNAME=${interface:-eth0}")
    for word in "$@"; do
      if [[ $word =~ ^[0-9]+: ]]; then
        [[ $word != "$rank":* ]] || own+=("${word#*:}")
      else
        own+=("$word")
      fi
    done
    ip netns exec "${list[rank]}" env "${own[@]}" "$ring_rank" "$folder" "$rank" "${#list[@]}" >"$folder/out.$rank" 2>&1 &
    pid[$name.$rank]=$!
  done
  for rank in "${!list[@]}"; do
    await "$folder/running.$rank.${round:-0}" && continue
    cat "$folder"/out.*
    fail "$name: rank $rank never ran"
    for rank in "${!list[@]}"; do kill -KILL "${pid[$name.$rank]}" 2>/dev/null || true; done
    return 1
  done
}

# ended NAME RANK error|stopped REGEX: also prints how long after `since` (a time of `now`) that was.
ended() {
  local name=$1 rank=$2 how=$3 regex=$4 folder=$scratch/$1 result seconds _
  await "$folder/result.$rank.${round:-0}" || { cat "$folder/out.$rank"; fail "$name: rank $rank goes on for ever"; return 1; }
  read -r result seconds _ <"$folder/result.$rank.${round:-0}"
  local after
  after=$(awk -v s="$seconds" -v t="${since:-0}" 'BEGIN { printf "%.2f", s - t }')
  if [[ $result != "$how" ]] || ! grep -qE "$regex" "$folder/log.$rank.${round:-0}"; then
    cat "$folder/log.$rank.${round:-0}"
    fail "$name: rank $rank: $result, wanted $how with /$regex/"
    return 1
  fi
  [[ ${brief:-0} == 1 ]] || echo "ok: $name: rank $rank $how${since:+ $after s after}"
}

# warnings NAME RANK COUNT
warnings() {
  local count
  count=$(grep -c '^WARN' "$scratch/$1/log.$2.${round:-0}" || true)
  [[ $count == "$3" ]] || { cat "$scratch/$1/log.$2.${round:-0}"; fail "$1: rank $2 warned $count times, not $3"; }
}

finish() {
  local name=$1 rank rc
  touch "$scratch/$name/stop"
  shift
  for rank in "$@"; do
    rc=0
    wait "${pid[$name.$rank]}" || rc=$?
    ((rc == 0)) || { cat "$scratch/$name/out.$rank"; fail "$name: rank $rank left with $rc"; }
  done
}

# lane_flow HOST: "local peer" of one of the host's lanes. A health socket has moved next to nothing.
lane_flow() {
  netns_run "$1" ss -tinHO state established | awk '/bytes_(acked|received):[0-9][0-9][0-9][0-9][0-9]/ {
    gsub("%[a-z0-9]+", ""); print $3, $4 }' | shuf -n 1
}
