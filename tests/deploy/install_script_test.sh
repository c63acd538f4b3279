#!/bin/bash
# install_script_test: deploy/install.sh copies what a pod needs, again and again, and says what is wrong.
#
# usage: install_script_test.sh INSTALL PROFILE
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

# The image's folder.
mkdir -p "$scratch/image/lib" "$scratch/image/seccomp" "$scratch/image/bin"
tools=(net_bench rma_bench tcpx_doctor tcpx_top tcpx_trace_merge)
for tool in "${tools[@]}"; do echo tool >"$scratch/image/bin/$tool"; done
cp "$1" "$scratch/image/install.sh"
cp "$2" "$scratch/image/seccomp/"
echo first >"$scratch/image/lib/libnccl-net-tcpx.so"
echo profiler >"$scratch/image/lib/libnccl-profiler-tcpx.so"

run() { sh "$scratch/image/install.sh" "$@" >"$scratch/log" 2>&1; }
content() { (cd "$scratch/$1" && find . ! -type d | sort | tr '\n' ' '); }

run "$scratch/pod" || fail "into a new folder: $(<"$scratch/log")"
programs=$(printf './bin/%s ' "${tools[@]}")
[[ $(content pod) == "$programs./libnccl-net-tcpx.so ./libnccl-net.so ./libnccl-profiler-tcpx.so ./librccl-net-tcpx.so " ]] ||
  fail "holds $(content pod)"
for tool in "${tools[@]}"; do [[ -x $scratch/pod/bin/$tool ]] || fail "$tool can't be run"; done
for link in libnccl-net librccl-net-tcpx; do
  [[ $(cat "$scratch/pod/$link.so") == first ]] || fail "the link $link.so leads elsewhere"
done

# Who has the old library open keeps it whole.
exec 3<"$scratch/pod/libnccl-net-tcpx.so"
echo second >"$scratch/image/lib/libnccl-net-tcpx.so"
run --seccomp "$scratch/kubelet" "$scratch/pod" || fail "again: $(<"$scratch/log")"
[[ $(cat <&3) == first ]] || fail "the open library changed below its user"
[[ $(cat "$scratch/pod/libnccl-net.so") == second ]] || fail "not replaced"
cmp "$2" "$scratch/kubelet/tcpx-io-uring.json" || fail "no profile"

TCPX_NO_DEFAULT_LINK=1 run "$scratch/pod" || fail "without the link"
[[ $(content pod) == "$programs./libnccl-net-tcpx.so ./libnccl-profiler-tcpx.so ./librccl-net-tcpx.so " ]] ||
  fail "holds $(content pod)"

# Links that somebody has left where a script without mktemp would write lead nowhere.
echo mine >"$scratch/precious"
for pid in $(seq $$ $(($$ + 400))); do ln -s "$scratch/precious" "$scratch/pod/.libnccl-net-tcpx.so.$pid"; done
run "$scratch/pod" || fail "with links there"
[[ $(<"$scratch/precious") == mine ]] || fail "it wrote through a link"
find "$scratch/pod" -name '.lib*' -delete
[[ -z $(find "$scratch/pod" "$scratch/kubelet" -name '.tcpx*') ]] || fail "it left its folder"

expect() {
  local rc=$1 text=$2 got=0
  shift 2
  run "$@" || got=$?
  [[ $got == "$rc" && $(<"$scratch/log") == *"$text"* ]] || fail "$*: exit code $got, not $rc, or not '$text'"
}
expect 0 "usage: install.sh" --help
expect 2 "usage: install.sh"
expect 2 "usage: install.sh" one two
expect 2 "unknown option --bogus" --bogus
expect 2 "--seccomp needs a folder" --seccomp
touch "$scratch/file"
expect 1 "" "$scratch/file"
exit "$failed"
