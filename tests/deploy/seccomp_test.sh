#!/bin/bash
# seccomp_test: under deploy/seccomp/tcpx-io-uring.json the plugin has io_uring, and under the same without its three
# calls, which is the runtime's default, epoll. Both move every byte.
#
# Nobody leaves the container under it: namespaces and mounts are refused.
#
# usage: seccomp_test.sh RUNNER PROFILE NET_BENCH PLUGIN REFUSED
set -euo pipefail

runner=$1 profile=$2 bench=$(realpath "$3") plugin=$(realpath "$4") refused=$5
# Debian's own: the module is a package of Debian's.
python=/usr/bin/python3
failed=0

# engine COMMAND...: what the plugin says about its engine when run by COMMAND
engine() {
  local log
  log=$(env TCPX_THREADS=1 TCPX_LANES=2 TCPX_ENGINE=auto "$@" "$bench" --plugin "$plugin" --no-priority --no-pin \
    --yield --keep-disturbed --phase any --mode latency -b 8 -e 256K -f 32 --samples 1 --check 2>&1) ||
    { echo "FAILED: net_bench: $log" >&2; return 1; }
  sed -n 's/.*; engine \(.*\)/\1/p' <<<"$log" | head -1
}

expect() {
  echo "$1: engine $2"
  [[ $2 == "$3"* ]] || { echo "FAILED: $1: engine '$2', not $3"; failed=1; }
}

# One line for each rule: nothing else may have come along.
extra=$(python3 -B - "$profile" <<'END'
import json, sys
rules = json.load(open(sys.argv[1]))["syscalls"]
names = ["io_uring_enter", "io_uring_register", "io_uring_setup"]
assert rules[0] == {"names": names, "action": "SCMP_ACT_ALLOW"}, rules[0]
print([name for rule in rules[1:] for name in rule["names"] if "io_uring" in name])
END
)
[[ $extra == "[]" ]] || { echo "FAILED: io_uring in more than one rule: $extra"; failed=1; }

if "$python" -c "import seccomp" 2>/dev/null; then
  "$python" -B "$runner" "$profile" "$python" -B "$refused" || { echo "FAILED: the profile is too wide"; failed=1; }
fi

plain=$(engine)
if [[ $plain != io_uring* ]]; then
  echo "SKIPPED: no io_uring here even without a profile: engine $plain"
  exit "$failed"
fi
"$python" -c "import seccomp" 2>/dev/null || { echo "SKIPPED: no python3-seccomp (apt-get install)"; exit "$failed"; }
expect "the profile" "$(engine "$python" -B "$runner" "$profile")" io_uring
denied=(--without io_uring_enter --without io_uring_register --without io_uring_setup)
expect "the runtime's default" "$(engine "$python" -B "$runner" "$profile" "${denied[@]}")" epoll
exit "$failed"
