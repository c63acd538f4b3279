#!/bin/bash
# srtt_test: between two hosts the sender of a lane sees the path's round trip, as a plain socket does, also where messages
# come now and then. Acknowledgements that the receiver put off showed it 13 to 17 ms where the path has 0.1 to 0.3, and
# retransmission and tail-loss probes then wait that long.
set -euo pipefail
source common/netns/netns.sh
netns_enter "$0" "$@"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export NCCL_SOCKET_IFNAME=eth0
failures=0
netns_add a b
netns_link a eth0 b eth0
netns_address a eth0 10.1.0.1/24
netns_address b eth0 10.1.0.2/24

# pattern BYTES GAP_MS COUNT: neither a figure nor a bar (bench/netns has those): half of what a delayed acknowledgement
# adds is far above what a busy machine does to a plain socket's mean.
pattern() {
  local folder=$scratch/$1 plugin bare
  mkdir "$folder"
  netns_run b tests/netns/srtt "$folder" receive "$@" &
  local receiver=$!
  read -r _ plugin _ bare < <(netns_run a tests/netns/srtt "$folder" send "$@")
  wait "$receiver"
  if ((plugin <= bare * 6 / 5 + 4000)); then
    echo "ok: $1 bytes each $2 ms: plugin $plugin us, bare $bare us"
  else
    echo "FAILED: $1 bytes each $2 ms: plugin $plugin us, bare $bare us"
    failures=$((failures + 1))
  fi
}

pattern 64 5 200
pattern 4096 10 100
pattern 65536 20 60

exit $((failures > 0))
