#!/bin/bash
# image_test: the image of deploy/Dockerfile is built from a clone of the repository, without a daemon, and its
#             installer
# puts the library into a folder.
#
# usage: image_test.sh WORKSPACE
#
# On demand, after tools/setup --deploy: takes ten minutes and 6 GB. The base is a Debian 12 from the mirror that this
# machine's apt uses, as no registry of images need be there. Needs root.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

root=$(dirname "$(realpath "$1")")
((EUID == 0)) || { echo "SKIPPED: the base image needs root"; exit 0; }
for tool in buildah mmdebstrap; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool (tools/setup --deploy)"; exit 0; }
done
sources=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true)
[[ -n $sources ]] || { echo "SKIPPED: apt here names no mirror of Debian"; exit 0; }

scratch=$(mktemp -d)
cleanup() {
  chmod -R u+w "$scratch" 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT
export TMPDIR=$scratch
image() { buildah --root "$scratch/store" --runroot "$scratch/run" --storage-driver vfs "$@"; }

mirror=$(awk '$1 == "URIs:" { print $2; exit } $1 == "deb" { print $2; exit }' <<<"$sources")
mmdebstrap --variant=minbase bookworm "$scratch/base.tar" "$mirror" >"$scratch/log" 2>&1 ||
  { tail -5 "$scratch/log"; echo "SKIPPED: $mirror gives no Debian 12"; exit 0; }
base=$(image from scratch)
image add "$base" "$scratch/base.tar" / >/dev/null
image config --cmd /bin/sh "$base"
image commit --quiet --rm "$base" localhost/base >/dev/null
rm "$scratch/base.tar"

git clone --quiet --no-hardlinks "$root" "$scratch/clone"
nice -n 5 buildah --root "$scratch/store" --runroot "$scratch/run" --storage-driver vfs bud --isolation chroot \
  --build-arg BASE=localhost/base --pull-never -f "$scratch/clone/deploy/Dockerfile" -t tcpx "$scratch/clone"

container=$(image from --pull-never tcpx)
image run --isolation chroot --user 0 "$container" -- /opt/tcpx/install.sh --seccomp /tmp/seccomp /tmp/pod
mounted=$(image mount "$container")
for file in pod/libnccl-net-tcpx.so pod/libnccl-profiler-tcpx.so seccomp/tcpx-io-uring.json; do
  [[ -s $mounted/tmp/$file ]] || { echo "FAILED: no $file"; exit 1; }
done
[[ $(readlink "$mounted/tmp/pod/libnccl-net.so") == libnccl-net-tcpx.so ]] || { echo "FAILED: no link"; exit 1; }
image run --isolation chroot "$container" -- net_bench --plugin libnccl-net-tcpx.so --no-priority --no-pin --yield \
  --keep-disturbed --phase any --mode latency -b 8 -e 8 --samples 1 --check
image umount "$container" >/dev/null
echo "built, installed, used"
