#!/bin/bash
# announced_test: NCCL announces 64 ranks, and one of them is a peer: its connection has all its lanes, and they carry.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"

# queued HOST COLUMN: bytes of all lanes of the host that wait to be read (1), or are not acknowledged (2).
queued() { netns_run "$1" ss -tnH state established | awk -v column="$2" '{ sum += $column } END { print sum + 0 }'; }
much_under_way() { (($(queued a 2) + $(queued b 1) >= 1 << 20)); }

netns_pair eth0 10.1.0.
# Without healing, where a send is done when the kernel has it: else no more is under way than the window of four
# messages.
start announced "a b" TCPX_HEAL=0 TCPX_LANES=auto TCPX_SPEED_MBPS=100000 RING_ANNOUNCE=64 1:RING_MUTE=1 && {
  # The peer reads nothing: what the lanes take is a window each, and what drains within milliseconds.
  await much_under_way || fail "announced: $(queued a 2) and $(queued b 1) bytes under way"
  touch "$scratch/announced/speak"
  finish announced 0 1
  for rank in 0 1; do
    ended announced "$rank" stopped "send device 0: 25 lanes" && warnings announced "$rank" 0
  done
}
netns_end
