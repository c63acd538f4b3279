#!/bin/bash
# soak.sh: episodes of traffic and faults, each from its own seed. Started by tools/soak.
#
#   SOAK_BIN=FOLDER tests/netns/soak.sh MINUTES SEED
#
# What an episode is like and what is to come of it follow from its seed alone: faults that everybody must survive, or
# one that nobody may. How many messages pass before a fault is the machine's business.
#
# environment: SOAK_BIN       where net_socket/ and tests/netns/ with the built files are
#              SOAK_EPISODE   only this one
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_require shuf
netns_enter "$0" "$@"
minutes=$1 seed=$2
ring_rank=$PWD/tests/netns/ring_rank
[[ -z ${SOAK_BIN:-} ]] || ring_rank=$SOAK_BIN/tests/netns/ring_rank
cd "${SOAK_BIN:-.}"  # where ring_rank finds the plugin
# Longest wait for an error: TCPX_PEER_TIMEOUT, what TCP needs to try again, and a loaded machine.
patience=90
declare -A times=() slowest=()
messages=0

pick() { local list=("$@"); picked=${list[RANDOM % ${#list[@]}]}; }
nap() { sleep "$((RANDOM % $1)).$((RANDOM % 10))"; }

# Survivable faults. Each leaves the network as it was.
stop_one() {
  local rank=$((RANDOM % size))
  kill -STOP "${pid[$name.$rank]}"
  sleep "$((1 + RANDOM % 4))"
  kill -CONT "${pid[$name.$rank]}"
}
cut_short() {
  netns_cut b eth0
  nap 2
  netns_mend b eth0
  sleep 1
}
lossy() {
  local share=$((1 + RANDOM % 50))
  for host in a b; do netns_lose "$host" "$share" meta l4proto tcp; done
  nap 4
  heal
}
strangers() {
  local host port clients=()
  for host in a b; do
    for port in $(netns_run "$host" ss -tlnH | awk '{ n = split($4, part, ":"); print part[n] }' | sort -u); do
      netns_run "$host" timeout 3 bash -c "
        for i in 1 2 3 4 5 6 7 8; do exec {fd}<>/dev/tcp/$(address "$host")/$port || true; done
        exec 3<>/dev/tcp/$(address "$host")/$port || exit 0
        case \$((RANDOM % 3)) in
          0) printf 'GET / HTTP/1.1\r\n\r\n' >&3 ;;
          1) head -c 3000 /dev/urandom >&3 ;;
          2) sleep 2 ;;
        esac" 2>/dev/null &
      clients+=($!)
    done
  done
  wait "${clients[@]}" || true
}
nothing() { nap 3; }

# Faults that end the connection of two ranks, and so the communicator of all; a lane that is killed only where lanes do
# not heal.
kill_lane() {
  local flow
  read -r -a flow <<<"$(lane_flow a)"
  [[ -z ${flow[0]:-} ]] || netns_run a ss -KtnH src "${flow[0]}" dst "${flow[1]}" >/dev/null
}
kill_rank() {
  dead=$((RANDOM % size))
  disown "${pid[$name.$dead]}"  # else bash tells of its end
  kill -KILL "${pid[$name.$dead]}"
}
cut_long() { netns_cut b eth0; }
drop_all() {
  netns_drop a
  netns_drop b
}

address() { if [[ $1 == a ]]; then echo 10.1.0.1; else echo 10.1.0.2; fi; }

heal() {
  netns_heal a
  netns_heal b
  netns_mend b eth0
}

# What each rank is given; rank by rank where they may differ.
environment() {
  environment=(RING_VARY=1 RING_TOGETHER=1 "TCPX_PEER_TIMEOUT=$timeout" TCPX_HELLO_TIMEOUT=3)
  pick 1 2 3 5 9
  environment+=("TCPX_LANES=$picked")
  if ((RANDOM % 5 == 0)); then
    # The kernel's least moves so little that more than two ranks on a busy machine would take minutes to stop.
    local bytes=$((size == 2 ? 1 : 20000))
    environment+=("NCCL_SOCKET_SNDBUF=$bytes" "NCCL_SOCKET_RCVBUF=$bytes")
    times[tiny buffers]=$((${times[tiny buffers]:-0} + 1))
  fi
  if ((RANDOM % 4 == 0)); then
    environment+=("$((RANDOM % size)):RING_FORK=1")
    times[fork]=$((${times[fork]:-0} + 1))
  fi
  ((RANDOM % 6)) || environment+=(TCPX_MAX_RECVS=4)
  pick 0 1 1
  heals=$picked
  environment+=("TCPX_HEAL=$heals")
  local rank
  for ((rank = 0; rank < size; ++rank)); do
    pick TCPX_THREADS=0 TCPX_THREADS=1 TCPX_THREADS=2
    environment+=("$rank:$picked")
    pick TCPX_ENGINE=io_uring TCPX_ENGINE=epoll TCPX_ENGINE=auto
    environment+=("$rank:$picked")
    if ((RANDOM % 6 == 0)); then
      pick 1 38  # EPERM, ENOSYS
      environment+=("$rank:RING_DENY=$picked")
      times[io_uring denied]=$((${times[io_uring denied]:-0} + 1))
    fi
  done
}

fault() {
  times[${1//_/ }]=$((${times[${1//_/ }]:-0} + 1))
  faults+=" $1"
  "$1"
}

# Messages, and how long the error took to come.
count_rank() {
  local seconds received
  read -r _ seconds received <"$scratch/$name/result.$2.0"
  messages=$((messages + received))
  [[ $1 == error ]] || return 0
  slowest[$ending]=$(awk -v now="$seconds" -v since="$since" -v most="${slowest[$ending]:-0}" \
    'BEGIN { after = now - since; printf "%.1f", (after > most ? after : most) }')
}

# Every rank that lives ends as `how` says, in order.
await_end() {
  local how=$1 rank warned
  ranks=()
  for ((rank = 0; rank < size; ++rank)); do [[ $rank == "$dead" ]] || ranks+=("$rank"); done
  [[ $how == stopped ]] && finish "$name" "${ranks[@]}"
  for rank in "${ranks[@]}"; do
    ended "$name" "$rank" "$how" "" || continue
    warned=$(warnings_in "$scratch/$name/log.$rank.0")
    if [[ $how == stopped ]]; then
      ((warned == 0)) || fail "rank $rank warned of nothing" "$scratch/$name/log.$rank.0"
    else
      ((warned >= 1)) || fail "rank $rank failed without a warning" "$scratch/$name/log.$rank.0"
    fi
    count_rank "$how" "$rank"
  done
  heal
  [[ $how == stopped ]] || finish "$name" "${ranks[@]}"
}

episode() {
  name=episode$1
  RANDOM=$(((seed * 7919 + $1) % 32768))
  local before=$failures where
  pid=()
  dead=none faults= brief=1
  pick "a b" "a b a" "a b a b" "a a b"
  where=$picked
  size=$(wc -w <<<"$where")
  pick 2 8
  timeout=$picked
  environment
  echo "episode $1: $where ${environment[*]}"
  start "$name" "$where" "${environment[@]}" || return 0
  # While a flow may be silent for longer than the timeout, survival is not promised.
  local mild=(nothing stop_one strangers)
  ((timeout < 8)) || mild+=(cut_short lossy)
  local i endings=(none none kill_rank cut_long drop_all)
  if ((heals)); then mild+=(kill_lane kill_lane); else endings+=(kill_lane kill_lane); fi
  for ((i = RANDOM % 3; i >= 0; --i)); do
    pick "${mild[@]}"
    fault "$picked"
  done
  pick "${endings[@]}"
  ending=$picked
  for ((i = 0; i < size; ++i)); do
    [[ ! -e $scratch/$name/result.$i.0 ]] || fail "rank $i did not survive$faults" "$scratch/$name/log.$i.0"
  done
  since=$(now)
  if [[ $ending == none ]]; then
    await_end stopped
  else
    fault "$ending"
    await_end error
  fi
  if ((failures > before)); then
    kill -KILL "${pid[@]}" 2>/dev/null || true
    echo "episode $1:$faults: FINDING (again: tools/soak --seed $seed, SOAK_EPISODE=$1)"
  else
    echo "episode $1:$faults: fine"
    rm -rf "${scratch:?}/$name"
  fi
}

netns_pair eth0 10.1.0.
interface=eth0
echo "soak: seed $seed, $minutes minutes"
end=$((SECONDS + minutes * 60)) count=0
if [[ -n ${SOAK_EPISODE:-} ]]; then
  episode "$SOAK_EPISODE"
  netns_end
fi
while ((SECONDS < end && failures < 10)); do
  episode $((++count))
done
summary=
for what in "${!slowest[@]}"; do summary+=", ${what//_/ } known after ${slowest[$what]} s at the latest"; done
for what in "${!times[@]}"; do summary+=", $what ${times[$what]}"; done
echo "soak: seed $seed: $count episodes, $messages messages received, $failures findings$summary"
netns_end
