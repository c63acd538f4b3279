# wire.sh: hosts whose only network is wire (bench/netns/wire): delay, losses, paths and rates of a named profile. To be
# sourced after common/netns/lab.sh.
#
#   wire_find PATH                    # or '': where Bazel builds it
#   wire_up rack [--delay 1ms ...]    # hosts b and a, or b and a1 to a8 where the profile has 8 senders
#   netns_run b some_server & netns_run a some_client
#   wire_ctl cut on
#
# Addresses: b is 10.77.0.1 and fd77::1, the senders have .2 and ::2 and so on; the device is wire0, its MTU 1500.
# Errors:    what this machine can't do ends the script as a skip; a relay that does not start as a failure.
# Cleaning up: the relay ends with the script's namespaces, and the devices with the relay.
# shellcheck shell=bash

wire_program='' wire_control=/run/wire.ctl wire_pid=''
wire_senders=()

wire_find() {
  local candidate
  wire_program=$1
  for candidate in "$(dirname "$0")/wire/wire" bazel-bin/bench/netns/wire/wire bench/netns/wire/wire; do
    [[ -n $wire_program || ! -f $candidate || ! -x $candidate ]] || wire_program=$candidate
  done
  [[ -x $wire_program ]] || {
    echo "no wire found: give its path"
    exit 2
  }
}

wire_ctl() { "$wire_program" ctl "$wire_control" "$@"; }

# wire_address HOST NUMBER
wire_address() {
  ip -n "$1" link set wire0 mtu 1500 up
  netns_address "$1" wire0 "10.77.0.$2/24" "fd77::$2/64"
}

# wire_senders_of PROFILE: how many hosts send; nothing for an unknown profile.
wire_senders_of() { "$wire_program" profiles | awk -v name="$1" '$1 == name { print $2 }'; }

# wire_up PROFILE [OPTION...]: makes the hosts and starts the relay.
wire_up() {
  local profile=$1 count ends host number=1 log=/run/wire.log
  shift
  (: <>/dev/net/tun) 2>/dev/null || netns_skip "no /dev/net/tun to be opened here"
  count=$(wire_senders_of "$profile")
  wire_senders=(a)
  ((count == 1)) || mapfile -t wire_senders < <(seq -f 'a%g' "$count")
  ends=()
  for host in b "${wire_senders[@]}"; do
    netns_add "$host"
    ends+=(--end "$host:wire0=10.77.0.$number,fd77::$((number++))")
  done
  "$wire_program" "${ends[@]}" --control "$wire_control" --profile "$profile" "$@" >"$log" 2>&1 &
  wire_pid=$!
  await wire_settled "$log" || true
  grep -q '^ready$' "$log" || {
    cat "$log"
    exit 1
  }
  number=1
  for host in b "${wire_senders[@]}"; do wire_address "$host" $((number++)); done
}

wire_settled() { grep -qs '^ready$' "$1" || ! kill -0 "$wire_pid" 2>/dev/null; }

# wire_count END KEY [PATH]: a counter of what went to END, of one path or of all.
wire_count() {
  wire_ctl stats | awk -v to="to=$1" -v key="$2" -v path="path=${3:-}" '
    $1 == to && (path == "path=" || $2 == path) {
      for (i = 3; i <= NF; ++i) if (split($i, pair, "=") == 2 && pair[1] == key) sum += pair[2]
    }
    END { printf "%.0f\n", sum }'
}
