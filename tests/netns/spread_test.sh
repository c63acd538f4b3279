#!/bin/bash
# spread_test: eight ranks in a ring, one is killed: all others end with its name, not only its neighbours.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"
ring="a a a a a a a a"
dead=3
others=(0 1 2 4 5 6 7)
interface=lo

netns_add a

# kill_one NAME ENVIRONMENT...: starts a ring and kills the one.
kill_one() {
  start "$1" "$ring" TCPX_THREADS=0 "${@:2}" || return 1
  since=$(now)
  kill -KILL "${pid[$1.$dead]}"
}

kill_one spread && {
  # The dead one's addresses are those that its neighbours lost.
  for rank in 2 4; do ended spread "$rank" error "WARN.*(process has ended|reset|closed)" || true; done
  names=$(grep -ohE "WARN.*" "$scratch/spread/log.2.0" "$scratch/spread/log.4.0" |
    grep -oE "to 127[.0-9]*:[0-9]+" | sort -u)
  [[ -n $names ]] || fail "spread: the neighbours name nobody"
  names=$(awk '{ print "lost " $2 " " }' <<<"$names" | paste -sd'|')
  for rank in "${others[@]}"; do
    [[ $rank == 2 || $rank == 4 ]] || ended spread "$rank" error "WARN.*the peer failed: .*($names)" || true
    warnings spread "$rank" 1
  done
  finish spread "${others[@]}"
}

told_again() { grep -c '^WARN.*still failed' "$1" 2>/dev/null || true; }
told_twice() { (($(told_again "$1") >= 2)); }

# Without it, and before v11, only the neighbours know; the others go on waiting.
for how in TCPX_SPREAD_ERRORS=0 RING_VERSION=10; do
  name="alone $how"
  kill_one "$name" "$how" TCPX_STALL_WARN=0.3 || continue
  for rank in 2 4; do ended "$name" "$rank" error "WARN.*to 127" || true; done
  # Nothing is to happen to the others, where all know within milliseconds otherwise: no event can tell.
  sleep 1
  [[ $how != RING_VERSION=10 ]] || await told_twice "$scratch/$name/late.2.0" || fail "v10: not reported again"
  for rank in 0 1 5 6 7; do
    [[ ! -e "$scratch/$name/result.$rank.0" ]] || fail "alone: rank $rank ended too"
  done
  finish "$name" "${others[@]}"
  told=$(told_again "$scratch/$name/log.2.end")
  case $how in
    # Again and again while NCCL calls, but no flood: at most once each 0.3 s.
    RING_VERSION=10) ((told >= 2 && told <= 200)) || fail "v10: reported again $told times" ;;
    *) ((told == 0)) || fail "v12: reported again $told times" ;;
  esac
  echo "ok: $name: reported again $told times"
done
netns_end
