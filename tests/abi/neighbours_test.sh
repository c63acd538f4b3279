#!/bin/bash
# neighbours_test: two neighbouring releases talk: today's library and the previous one's, in both roles, every byte
# checked.
#
# usage: neighbours_test.sh WORKSPACE NET_BENCH PLUGIN
#
# The previous library is TCPX_PREVIOUS_PLUGIN (a path), or is built from TCPX_PREVIOUS (a commit), by default the
# latest release's tag, and while there is none the commit 40 before this one. On demand: it builds.
set -euo pipefail

root=$(dirname "$(realpath "$1")")
bench=$(realpath "$2") today=$(realpath "$3")
scratch=$(mktemp -d)
cleanup() {
  jobs -p | xargs -r kill 2>/dev/null || true
  chmod -R u+w "$scratch"
  rm -rf "$scratch"
}
trap cleanup EXIT
failed=0

previous_commit() {
  git -C "$root" describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || git -C "$root" rev-parse HEAD~40
}

# Prints the path of the previous library.
build_previous() {
  local commit=$1
  git clone --quiet --no-hardlinks "$root" "$scratch/tree"
  git -C "$scratch/tree" checkout --quiet --detach "$commit"
  cp -r "$root/third_party/distdir" "$scratch/tree/third_party/distdir"
  (cd "$scratch/tree" &&
    bazel --output_user_root="$scratch/bazel" build --config=opt --noshow_progress --color=no \
      //net_socket:libnccl-net-tcpx.so >"$scratch/build.log" 2>&1 </dev/null) ||
    { tail -20 "$scratch/build.log" >&2; return 1; }
  cp "$scratch/tree/bazel-bin/net_socket/libnccl-net-tcpx.so" "$scratch/previous.so"
  bazel --output_user_root="$scratch/bazel" shutdown >/dev/null 2>&1 || true
  echo "$scratch/previous.so"
}

# talk NAME LISTENER DIALLER SETTING...: two processes with a library each
talk() {
  local name=$1 listener=$2 dialler=$3 port= log=$scratch/listen.log options rc=0
  shift 3
  options=(--no-priority --no-pin)
  : >"$log"
  env NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=WARN "$@" "$bench" --listen 0 --plugin "$listener" "${options[@]}" >"$log" 2>&1 &
  for ((i = 0; i < 600 && ${#port} == 0; ++i)); do
    sleep 0.1
    port=$(sed -n 's/.*listening on port //p' "$log")
  done
  timeout 120 env NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=WARN "$@" "$bench" --connect "127.0.0.1:$port" --plugin "$dialler" \
    "${options[@]}" --yield --keep-disturbed --phase any --mode latency,bidir --conns 2 -b 1 -e 4M -f 64 --samples 1 \
    --check >"$scratch/connect.log" 2>&1 || rc=$?
  wait %% || rc=$?
  if ((rc == 0)); then
    echo "$name, ${*:-by default}: every byte right"
  else
    echo "FAILED: $name, ${*:-by default}: exit code $rc"
    cat "$log" "$scratch/connect.log"
    failed=1
  fi
}

old=${TCPX_PREVIOUS_PLUGIN:-}
if [[ -z $old ]]; then
  commit=${TCPX_PREVIOUS:-$(previous_commit)}
  echo "building the library of $(git -C "$root" log -1 --format='%h of %cs, %s' "$commit")"
  old=$(build_previous "$commit")
fi
! cmp -s "$old" "$today" || { echo "FAILED: both libraries are the same file"; exit 1; }

(umask 077 && head -c 24 /dev/urandom | base64 >"$scratch/secret")
for settings in "" "TCPX_THREADS=2 TCPX_LANES=3" "TCPX_SECRET_FILE=$scratch/secret" "TCPX_HEAL=1 TCPX_THREADS=1"; do
  talk "today's dials the previous" "$old" "$today" $settings
  talk "the previous dials today's" "$today" "$old" $settings
done
exit "$failed"
