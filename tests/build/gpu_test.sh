#!/bin/bash
# gpu_test: tools/gpu counts, skips and fails as it says, and says what it lacks. A script plays NCCL and the GPU.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

check() {
  [[ $2 == "$3" ]] || { echo "FAILED: $1: '$2', not '$3'"; failures=$((failures + 1)); }
}

# A folder as --pack makes it. The stand-in for nccl_bench takes all but LL128, and notes what it was asked.
mkdir -p "$scratch/pack" "$scratch/logs"
cp tools/gpu tools/gpu_cases.sh "$scratch/pack"
echo "a plugin without staging" >"$scratch/pack/libnccl-net-tcpx.so"
cat >"$scratch/pack/nccl_bench" <<'INNER'
#!/bin/bash
echo "$NCCL_NET_PLUGIN ${NCCL_PROTO:--} $*" >>"$(dirname "$0")/calls"
[[ ${NCCL_PROTO:-} != LL128 ]]
INNER
cat >"$scratch/pack/gpu_probe" <<'INNER'
#!/bin/bash
echo "a copy of 256 KiB during a kernel that polls: ${CUDA_DEVICE_MAX_CONNECTIONS:-many}"
[[ ${CUDA_DEVICE_MAX_CONNECTIONS:-} != 1 ]]
INNER
chmod +x "$scratch/pack/nccl_bench" "$scratch/pack/gpu_probe"
# An NCCL that has one-sided transfers, and one that has none.
mkdir -p "$scratch/new/lib" "$scratch/old/lib"
echo ncclPutSignal >"$scratch/new/lib/libnccl.so.2"
echo ncclAllReduce >"$scratch/old/lib/libnccl.so.2"

# run_cases ONLY: sets rc and output.
run_cases() {
  rc=0
  output=$(
    # shellcheck disable=SC2030
    export PATH=/usr/bin:/bin
    say() { :; }
    dir=$scratch/pack here=$scratch/pack ranks=2 only=$1 timeout_s=5 logs=$scratch/logs
    source tools/gpu_cases.sh
    run_all_cases
  ) 2>/dev/null || rc=$?
}

run_cases proto-LL
check "a failing case fails all" "$rc" 1
check "the count" "$(tail -n 1 <<<"$output")" "1 passed, 1 failed, 0 skipped"
check "who failed" "$(grep -c '^failed   proto-LL128 ' <<<"$output" || true)" 1
check "every case names the plugin and the net" \
  "$(grep -vc -e '^tcpx .* --nets tcpx ' -e '--local 1 ' "$scratch/pack/calls" || true)" 0

run_cases staging
check "only skips is no success" "$rc" 1
check "the skip" "$(grep -c '^skipped  staging ' <<<"$output" || true)" 1

run_cases abort
check "a passing case" "$rc" 0
check "its options" "$(grep -c -- '--mode abort' "$scratch/pack/calls" || true)" 1

CUDA_DEVICE_MAX_CONNECTIONS=8 NCCL_HOME=$scratch/new run_cases rma
check "copies that don't move fail" "$(grep -c '^failed   rma-probe-one-connection ' <<<"$output" || true)" 1
check "the rest goes on" "$(tail -n 1 <<<"$output")" "5 passed, 1 failed, 0 skipped"
check "what the probe says is shown" "$(grep -c '^a copy .*: many$' <<<"$output" || true)" 1
check "the plugin's puts" "$(grep -c -- '--mode one-sided' "$scratch/pack/calls" || true)" 4
NCCL_HOME=$scratch/old run_cases rma-put
check "an NCCL without puts" "$(grep -c '^skipped  rma-put-signal ' <<<"$output" || true)" 1

# The script itself.
rc=0
"$scratch/pack/gpu" --ranks 1 2>/dev/null || rc=$?
check "wrong usage" "$rc" 2
if compgen -G '/dev/nvidia[0-9]*' >/dev/null || [[ -e /dev/dxg ]]; then
  echo "this machine has a GPU: what tools/gpu says without one is not checked"
else
  rc=0
  said=$("$scratch/pack/gpu" 2>&1) || rc=$?
  check "without a GPU" "$rc" 3
  check "in one line" "$(wc -l <<<"$said")" 1
fi
exit $((failures > 0))
