#!/bin/bash
# old_system_test: the .deb in a whole Debian 11 (glibc 2.31, as in Ubuntu 20.04): installed, used, upgraded, removed.
#
# usage: old_system_test.sh WORKSPACE
#
# On demand (manual): it fetches that system from the mirror that this machine's apt uses. Needs root and mmdebstrap.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

root=$(dirname "$(realpath "$1")")
built=$PWD
((EUID == 0)) || { echo "SKIPPED: a chroot needs root"; exit 0; }
[[ $(uname -m) == x86_64 ]] || { echo "SKIPPED: for amd64 only"; exit 0; }
command -v mmdebstrap >/dev/null || { echo "SKIPPED: no mmdebstrap (apt-get install mmdebstrap)"; exit 0; }
mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
mirror=${mirror:-$(awk '$1 == "deb" { print $2; exit }' /etc/apt/sources.list 2>/dev/null)}
[[ -n $mirror ]] || { echo "SKIPPED: apt here names no mirror of Debian"; exit 0; }

scratch=$(mktemp -d)
trap 'umount "$scratch/system/proc" 2>/dev/null; rm -rf "$scratch"' EXIT
mmdebstrap --variant=essential bullseye "$scratch/system" "$mirror" >"$scratch/log" 2>&1 ||
  { tail -5 "$scratch/log"; echo "SKIPPED: $mirror gives no Debian 11"; exit 0; }
for version in 0.1 0.2; do
  python3 -B "$root/deploy/packaging/package.py" --root "$root" --built "$built" --arch amd64 --version "$version" \
    --epoch 1700000000 --commit c0ffee --out "$scratch/system/tmp" deb >/dev/null
done
mount -t proc proc "$scratch/system/proc"
chroot "$scratch/system" /bin/sh -eu <<'END'
ldd --version | head -1
listing() { find / -xdev -path /tmp -prune -o -path /var/lib/dpkg -prune -o -path /var/log -prune -o -print | sort; }
use() {
  net_bench --plugin "$1" --no-priority --no-pin --yield --keep-disturbed --phase any --mode latency -b 8 -e 64K \
    --samples 1 --check
}
listing >/tmp/before
dpkg -i /tmp/libnccl-net-tcpx_0.1_amd64.deb
use libnccl-net-tcpx.so
use libnccl-net.so
dpkg -i /tmp/libnccl-net-tcpx_0.2_amd64.deb
use libnccl-net.so
dpkg --purge libnccl-net-tcpx
listing >/tmp/after
diff /tmp/before /tmp/after
END
echo "installed, used, upgraded, removed; nothing left"
