# wirings.sh: what the tests of several wirings between two peers share. Sourced after netns_enter.
# shellcheck shell=bash

peer=tests/netns/peer
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" || true' EXIT
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# Takes a wiring away: hosts a and b, a switch s, a router r, as far as they are there.
unplug() {
  local ns
  for ns in a b s r; do ip netns delete "$ns" 2>/dev/null || true; done
}
