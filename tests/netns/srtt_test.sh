#!/bin/bash
# srtt_test: between two hosts the sender of a lane sees the path's round trip, as a plain socket does, also where
#            messages
# come now and then. Acknowledgements that the receiver put off showed it 13 to 17 ms where the path has 0.1 to 0.3, and
# retransmission and tail-loss probes then wait that long.
set -euo pipefail
source common/netns/lab.sh
netns_enter "$0" "$@"

netns_pair eth0 10.1.0.

# pattern BYTES GAP_MS COUNT: neither a figure nor a bar (bench/netns has those): half of what a delayed acknowledgement
# adds is far above what a busy machine does to a plain socket's mean. Such a machine may delay the last few messages of
# a run, and not of three; an acknowledgement that is put off is late in each.
pattern() {
  local plugin bare run
  for run in first second third; do
    launch "$1-$run" receive b NCCL_SOCKET_IFNAME=eth0 -- tests/netns/srtt "$scratch/$1-$run" receive "$@"
    launch "$1-$run" send a NCCL_SOCKET_IFNAME=eth0 -- tests/netns/srtt "$scratch/$1-$run" send "$@"
    ended_well "$1-$run" send receive || { fail "$1 bytes each $2 ms"; return; }
    read -r _ plugin _ bare < <(grep '^plugin ' "$scratch/$1-$run/send.log")
    ((plugin > bare * 6 / 5 + 4000)) || break
  done
  check "$1 bytes each $2 ms" "plugin <= bare * 6 / 5 + 4000" "plugin $plugin us, bare $bare us, $run run"
}

pattern 64 5 200
pattern 4096 10 100
pattern 65536 20 60
netns_end
