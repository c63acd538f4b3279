#!/bin/sh
# install.sh: copies the plugin out of this image into a folder, so that a pod or a whole node has it.
#
# usage: install.sh [--seccomp DIR] DIR
#   DIR            gets libnccl-net-tcpx.so, the links libnccl-net.so and librccl-net-tcpx.so (RCCL's name for it),
#                  libnccl-profiler-tcpx.so, and the tools in bin: tcpx_doctor, tcpx_top, tcpx_trace_merge, net_bench,
#                  rma_bench
#   --seccomp DIR  gets the seccomp profile too: a node's /var/lib/kubelet/seccomp
#   --version      the version of what it installs
#
# Each file is first written to a new folder with a random name, where nobody can have left a link, and then renamed to
# its place: a process that has the old file open keeps it whole. TCPX_NO_DEFAULT_LINK=1 leaves out libnccl-net.so: only
# jobs that name the plugin (NCCL_NET_PLUGIN=tcpx) then use it.
#
# exit codes: 0 done; 1 a file can't be written; 2 wrong use
set -eu
source=$(dirname "$0")

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

# put FILE DIR [MODE]: the new content appears at once or not at all
put() {
  temporary=$(mktemp -d "$2/.tcpx.XXXXXXXX")
  cp "$1" "$temporary/file"
  chmod "${3:-644}" "$temporary/file"
  mv -fT "$temporary/file" "$2/${1##*/}"
  rmdir "$temporary"
}

seccomp=
case ${1:-} in
  -h | --help) usage; exit 0 ;;
  --version)
    version=$("$source/bin/tcpx_doctor" --version 2>/dev/null) || version='(from the sources)'
    echo "install.sh ${version#tcpx_doctor }"
    exit 0 ;;
  --seccomp)
    seccomp=${2:-}
    [ -n "$seccomp" ] || { echo "install.sh: --seccomp needs a folder" >&2; exit 2; }
    shift 2 ;;
esac
[ $# = 1 ] || { usage >&2; exit 2; }
case $1 in -*) echo "install.sh: unknown option $1" >&2; exit 2 ;; esac

mkdir -p "$1/bin"
for tool in tcpx_doctor tcpx_top tcpx_trace_merge net_bench rma_bench; do put "$source/bin/$tool" "$1/bin" 755; done
put "$source/lib/libnccl-profiler-tcpx.so" "$1"
put "$source/lib/libnccl-net-tcpx.so" "$1"
ln -sfn libnccl-net-tcpx.so "$1/librccl-net-tcpx.so"
if [ "${TCPX_NO_DEFAULT_LINK:-0}" = 1 ]; then
  [ ! -L "$1/libnccl-net.so" ] || rm "$1/libnccl-net.so"
else
  ln -sfn libnccl-net-tcpx.so "$1/libnccl-net.so"
fi
if [ -n "$seccomp" ]; then
  mkdir -p "$seccomp"
  put "$source/seccomp/tcpx-io-uring.json" "$seccomp"
fi
echo "installed libnccl-net-tcpx.so in $1${seccomp:+, tcpx-io-uring.json in $seccomp}"
