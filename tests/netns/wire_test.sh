#!/bin/bash
# wire_test: does the relay between namespaces do what it says? Judged by its counters and by the bytes, never by time.
set -euo pipefail
source common/netns/lab.sh
source bench/netns/wire.sh
netns_enter "$0" "$@"
netns_require python3

port=4000
patience=$((2 * patience))

counted() { (($(wire_count b "$1") > $2)); }

# send HOST STREAMS BYTES: starts them from a to b.
send() {
  port=$((port + 1))
  launch wire b b -- python3 tests/netns/wire_traffic.py sink "$port" "$2" "$scratch/ready$port"
  await test -e "$scratch/ready$port"
  netns_run a python3 tests/netns/wire_traffic.py send "$1" "$port" "$2" "$3" &
}

# arrived NAME STREAMS: all of them did, and unchanged.
arrived() {
  local right
  ended_well wire b
  right=$(<"$scratch/wire/b.log")
  check "$1" "right == $2" "$right of $2 streams unchanged"
}

wire_find ''
wire_up rack

for host in 10.77.0.1 fd77::1; do
  send "$host" 2 4000000
  arrived "bytes reach $host" 2
done
check "no losses of its own" "$(wire_count b lost) + $(wire_count b late) == 0" "$(wire_ctl stats | tail -1)"

for setting in "loss 1%" "loss-run 3" "reorder 1%" "jitter 10us"; do
  wire_ctl "set $setting" >>"$scratch/answer"
done
check "settings while it runs" "$(grep -c ok "$scratch/answer") == 4" "$(tr '\n' ' ' <"$scratch/answer")"
for host in 10.77.0.1 fd77::1; do
  send "$host" 4 2000000
  arrived "bytes reach $host in spite of losses" 4
done
# 16 MB are 11000 segments and more.
check "segments are lost" "$(wire_count b lost) >= 20" "$(wire_count b lost) lost"
check "segments are overtaken" "$(wire_count b late) >= 20" "$(wire_count b late) late"
for setting in loss reorder jitter; do wire_ctl set $setting 0 >/dev/null; done

wire_ctl set rate 100M >/dev/null
before=$(wire_count b bytes)
send 10.77.0.1 1 20000000
await counted bytes $((before + 2000000))
wire_ctl cut on >/dev/null
stopped=$(wire_count b bytes)
# Its end is not at once where segments are under way; those that come later are counted.
await counted cut 2
check "a cut stops everything" "$(wire_count b bytes) == $stopped" "$(wire_count b cut) segments cut"
wire_ctl cut off >/dev/null
arrived "bytes arrive once the cut ends" 1
check "a rate fills its queue" "$(wire_count b full) > 0" "$(wire_count b full) segments found it full"

wire_ctl set rate 0 >/dev/null
wire_ctl set paths 8 >/dev/null
send 10.77.0.1 128 1000
arrived "bytes arrive over 8 paths" 128
used=0
for ((path = 0; path < 8; ++path)); do (($(wire_count b flows $path) == 0)) || used=$((used + 1)); done
check "flows spread over paths" "used == 8" "$used of 8 paths have flows"

wire_ctl set paths 9999 >"$scratch/answer" || true
check "a wrong setting is refused" "$(grep -c '^error: ' "$scratch/answer") == 1" "$(<"$scratch/answer")"

netns_end
