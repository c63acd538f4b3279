# gpu_cases.sh: the cases of tools/gpu, which sources it.
#
# Uses: dir (the binaries), here (the scripts), ranks, only, timeout_s, logs, say.

passed=0
failed=0
skipped=0
table=""
users_path=""

# Looks where NCCL may lie; nccl_bench itself knows only the place where it was linked.
find_nccl() {
  local home folder
  for home in ${NCCL_HOME:-} "${CUDA_HOME:-/usr/local/cuda}" /usr/local /usr; do
    for folder in lib lib64 lib/x86_64-linux-gnu lib/aarch64-linux-gnu; do
      [[ ! -e $home/$folder/libnccl.so.2 ]] || { echo "$home/$folder"; return; }
    done
  done
}

# record RESULT NAME NOTE
record() {
  case $1 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
  esac
  table+=$(printf '%-8s %-28s %s' "$1" "$2" "$3")$'\n'
  say "$1: $2${3:+ ($3)}"
}

wanted() { [[ -z $only || $1 == *"$only"* ]]; }

skip() {
  wanted "$1" || return 0
  record skipped "$1" "$2"
}

# run_case NAME [VARIABLE=VALUE...] -- COMMAND...: the exit code decides. What ignores its own timeout is killed.
run_case() {
  local name=$1 variables=() rc=0 start=$SECONDS
  shift
  while [[ $1 != -- ]]; do variables+=("$1"); shift; done
  shift
  wanted "$name" || return 0
  printf '%s\n' "# ${variables[*]} $*" >"$logs/$name.log"
  env "${variables[@]}" timeout -k 10 $((timeout_s * 10)) "$@" >>"$logs/$name.log" 2>&1 </dev/null || rc=$?
  if ((rc == 0)); then
    record passed "$name" "$((SECONDS - start)) s"
  else
    record failed "$name" "exit code $rc, see $logs/$name.log"
    tail -n 15 "$logs/$name.log" >&2
  fi
}

# bench NAME [VARIABLE=VALUE...] -- OPTIONS...: nccl_bench over the plugin, every rank asserting that.
bench() {
  local name=$1 variables=()
  shift
  while [[ $1 != -- ]]; do variables+=("$1"); shift; done
  shift
  run_case "$name" "${variables[@]}" -- "$dir/nccl_bench" --local "$ranks" --nets tcpx --timeout "$timeout_s" "$@"
}

# From one element to several chunks, few times each: these cases are about what arrives, not how fast.
few=(-b 4 -e 16M -f 16 -n 3 -w 1)

run_protocols() {
  local staging=$1 suffix=$2 proto value
  for proto in LL LL128 Simple; do
    bench "proto-$proto$suffix" "$staging" NCCL_PROTO=$proto -- --collective all "${few[@]}"
  done
  bench "algo-ring$suffix" "$staging" NCCL_ALGO=Ring -- --collective all "${few[@]}"
  # NCCL has a tree for this one only.
  bench "algo-tree$suffix" "$staging" NCCL_ALGO=Tree -- --collective all_reduce "${few[@]}"
  for value in 0 1; do
    for proto in LL LL128; do
      bench "optional-receive-$value-$proto$suffix" "$staging" NCCL_NET_OPTIONAL_RECV_COMPLETION=$value \
        NCCL_PROTO=$proto -- --collective all "${few[@]}"
    done
  done
  for value in 1 4; do
    bench "lanes-$value$suffix" "$staging" NCCL_SOCKET_NTHREADS=1 NCCL_NSOCKS_PERTHREAD=$value \
      -- --collective all -b 0 -e 64M -f 8 -n 2 -w 1
    bench "odd-sizes-lanes-$value$suffix" "$staging" NCCL_SOCKET_NTHREADS=1 NCCL_NSOCKS_PERTHREAD=$value \
      -- --collective all -d int8 -b 1 -e 16M -f 7 -n 2 -w 1
  done
}

run_collectives() {
  bench collectives -- --collective all -d all -o all "${few[@]}"
  bench collectives-graph -- --collective all -d float,bfloat16 --graph "${few[@]}"
  run_protocols TCPX_GPU_DIRECT_STAGING=0 ""
  # A plugin that stages looks the driver's copy functions up by name.
  if grep -q cuMemcpy "$dir/libnccl-net-tcpx.so"; then
    bench collectives-graph-staged TCPX_GPU_DIRECT_STAGING=1 -- --collective all --graph "${few[@]}"
    run_protocols TCPX_GPU_DIRECT_STAGING=1 -staged
  else
    skip staging "this build of the plugin has no GPU staging"
  fi
}

run_communicators() {
  bench bootstrap-over-plugin NCCL_OOB_NET_ENABLE=1 -- --collective all_reduce "${few[@]}"
  bench traffic-classes -- --mode classes
  bench split -- --local 4 --mode split
  bench abort -- --mode abort
  bench killed -- --local 3 --mode killed
  # Some releases forget the plugin's name when they load it again: once by the name they fall back to, once kept.
  bench reload-default-name -- --mode reload --rounds 50 --plugin ""
  bench reload-kept NCCL_NET_PLUGIN_REF_COUNT=1 -- --mode reload --rounds 50 --plugin tcpx
}

# One-sided transfers (docs/rma.md): first whether copies move while NCCL's streams and kernels wait.
run_rma() {
  local nccl
  nccl=$(find_nccl)
  run_case rma-probe -u CUDA_DEVICE_MAX_CONNECTIONS -- "$dir/gpu_probe"
  run_case rma-probe-one-connection CUDA_DEVICE_MAX_CONNECTIONS=1 -- "$dir/gpu_probe"
  if [[ -z $nccl ]] || ! grep -q ncclPutSignal "$nccl/libnccl.so.2"; then
    skip rma-put-signal "NCCL here has no ncclPutSignal: one-sided transfers need 2.30.7"
    return
  fi
  bench rma-put-signal TCPX_RMA=1 -- --mode one-sided
  bench rma-gdrcopy TCPX_RMA=1 TCPX_RMA_GDRCOPY=1 -- --mode one-sided
  bench rma-zero-sm TCPX_RMA=1 NCCL_CTA_POLICY=2 -- --mode one-sided
  bench rma-one-connection TCPX_RMA=1 CUDA_DEVICE_MAX_CONNECTIONS=1 -- --mode one-sided
}

run_torch() {
  local mode
  for mode in all_reduce ddp; do
    if ! command -v python3 >/dev/null; then
      skip "torch-$mode" "no python3"
    elif ! python3 -c 'import torch.distributed' 2>/dev/null; then
      skip "torch-$mode" "python3 can't import torch"
    else
      # torch brings an NCCL of its own.
      run_case "torch-$mode" LD_LIBRARY_PATH="$dir${users_path:+:$users_path}" -- python3 "$here/gpu_torch.py" \
        --ranks "$ranks" --timeout "$timeout_s" "$mode"
    fi
  done
}

run_driver_tests() {
  local test found=0
  for test in "$dir"/tests/*; do
    [[ -x $test ]] || continue
    found=1
    run_case "driver-$(basename "$test")" -- env -C "$dir" "$test"
  done
  ((found)) || skip driver-tests "this build has no tests that use the real driver"
}

run_comparison() {
  run_case side-by-side -- "$dir/nccl_bench" --local "$ranks" --nets tcpx,Socket --timeout "$timeout_s" \
    --collective all_reduce,all_gather,sendrecv -b 1K -e 64M -f 4 -n 10 -w 3
  ! grep -q cuMemcpy "$dir/libnccl-net-tcpx.so" ||
    run_case side-by-side-staged TCPX_GPU_DIRECT_STAGING=1 -- "$dir/nccl_bench" --local "$ranks" --nets tcpx,Socket \
      --timeout "$timeout_s" --collective all_reduce,all_gather,sendrecv -b 1K -e 64M -f 4 -n 10 -w 3
}

# Version of what the figures were taken with, for docs/gpu.md.
describe_machine() {
  echo "date $(date -u +%F), kernel $(uname -r), $(nproc) CPUs"
  sed -n '/^# nccl_bench: /{s/^# nccl_bench: //p;q}' "$logs"/side-by-side.log 2>/dev/null || true
}

run_all_cases() {
  local nccl
  nccl=$(find_nccl)
  users_path=${LD_LIBRARY_PATH:-}
  export LD_LIBRARY_PATH=$dir${nccl:+:$nccl}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export NCCL_NET_PLUGIN=tcpx
  if ! "$dir/nccl_bench" --local 1 -b 4 -n 1 -w 0 >"$logs/first.log" 2>&1; then
    cat "$logs/first.log" >&2
    ! grep -q 'no CUDA device' "$logs/first.log" || { say "the driver offers no GPU: nothing was run"; exit 3; }
    say "nccl_bench does not run here with a single rank: nothing else was tried"
    exit 1
  fi
  run_driver_tests
  run_collectives
  run_communicators
  run_rma
  run_torch
  run_comparison
  local log
  for log in "$logs/side-by-side.log" "$logs/side-by-side-staged.log"; do
    [[ ! -e $log ]] || sed -n '1p;/^# DISTORTED/p;/^# side by side/,$p' "$log"
  done
  for log in "$logs"/rma-*.log; do
    [[ ! -e $log ]] || grep -hE '^(a copy|a signal|# one-sided)|CUDA_DEVICE_MAX_CONNECTIONS' "$log" || true
  done
  describe_machine
  printf '%s' "$table"
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0 && passed > 0))
}
