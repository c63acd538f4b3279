#!/bin/bash
# install_test: the .deb and the .rpm, installed below a folder of their own: loaded from where they lie, removed, and
# nothing is left; the .deb is upgraded between.
#
# usage: install_test.sh WORKSPACE
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

root=$(dirname "$(realpath "$1")")
built=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) echo "SKIPPED: packages are made for amd64 and arm64 only"; exit 0 ;;
esac

# pack VERSION KIND...: into $scratch
pack() {
  python3 -B "$root/deploy/packaging/package.py" --root "$root" --built "$built" --arch "$arch" --version "$1" \
    --epoch 1700000000 --commit c0ffee --out "$scratch" "${@:2}"
}

# Both libraries load, with the tables that NCCL and RCCL look up, and the driver moves bytes through the plugin.
use() {
  python3 - "$1" <<'END' || fail "the libraries in $1 can't be used"
import ctypes, sys
for name, table in (
    ("libnccl-net", "ncclNetPlugin_v12"), ("librccl-net", "ncclNetPlugin_v12"), ("libnccl-profiler", "ncclProfiler_v6")
):
    library = ctypes.CDLL("%s/%s-tcpx.so" % (sys.argv[1], name))
    ctypes.c_char.in_dll(library, table)
END
  "$2/net_bench" --plugin "$1/libnccl-net-tcpx.so" --no-priority --no-pin --yield --keep-disturbed --phase any \
    --mode latency -b 8 -e 8 --samples 1 --check >"$scratch/bench.log" 2>&1 ||
    { fail "net_bench over the installed plugin"; cat "$scratch/bench.log"; }
}

# Everything below a root but the package manager's own books.
listing() { (cd "$1" && find . -path ./var -prune -o -print | sort); }

on_root() {
  dpkg --root="$scratch/deb" --force-not-root --force-script-chrootless --force-depends --log=/dev/null "$@" \
    >"$scratch/dpkg.log" 2>&1 || { fail "dpkg $*"; cat "$scratch/dpkg.log"; }
}

is_default() { [[ $(readlink "$scratch/deb/etc/alternatives/libnccl-net.so") == */libnccl-net-tcpx.so ]]; }

test_deb() {
  local lib
  mkdir -p "$scratch/deb/var/lib/dpkg/updates" "$scratch/deb/var/lib/dpkg/info" "$scratch/deb/etc/alternatives" \
    "$scratch/deb/var/lib/dpkg/alternatives" "$scratch/deb/usr/bin" "$scratch/deb/usr/share/doc" "$scratch/deb/var/log"
  touch "$scratch/deb/var/lib/dpkg/status"
  lib=$scratch/deb/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)
  mkdir -p "$lib"
  # dpkg removes a folder with its last file.
  touch "$lib/other" "$scratch/deb/usr/bin/other" "$scratch/deb/usr/share/doc/other"
  listing "$scratch/deb" >"$scratch/before"
  # Nobody was asked: no.
  on_root --install "$scratch/libnccl-net-tcpx_0.1_$arch.deb"
  is_default && fail "tcpx is the default of the machine although nobody said so"
  DPKG_ROOT=$scratch/deb "$scratch/deb/usr/sbin/tcpx_default" on >/dev/null 2>&1
  is_default || fail "tcpx_default on: the alternative libnccl-net.so does not lead to the plugin"
  on_root --install "$scratch/libnccl-net-tcpx_0.2_$arch.deb"
  grep -q '^Version: 0.2$' "$scratch/deb/var/lib/dpkg/status" || fail "not upgraded"
  use "$lib" "$scratch/deb/usr/bin"
  is_default || fail "the alternative did not outlive the upgrade"
  # What the administrator has taken back stays so.
  update-alternatives --root "$scratch/deb" --remove-all libnccl-net.so >/dev/null 2>&1
  on_root --install "$scratch/libnccl-net-tcpx_0.1_$arch.deb"
  is_default && fail "an upgrade undid update-alternatives --remove-all"
  on_root --purge libnccl-net-tcpx
  listing "$scratch/deb" | diff "$scratch/before" - || fail "the .deb left something behind, or took something along"
  # Yes in the environment, and yes to debconf, which is a stand-in here.
  TCPX_DEFAULT=1 on_root --install "$scratch/libnccl-net-tcpx_0.1_$arch.deb"
  is_default || fail "TCPX_DEFAULT=1 does not make tcpx the default"
  on_root --purge libnccl-net-tcpx
  mkdir -p "$scratch/deb/usr/share/debconf"
  printf 'db_get() { RET=true; }\ndb_stop() { :; }\ndb_purge() { :; }\n' >"$scratch/deb/usr/share/debconf/confmodule"
  on_root --install "$scratch/libnccl-net-tcpx_0.1_$arch.deb"
  is_default || fail "the answer to debconf's question has no effect"
  on_root --remove libnccl-net-tcpx
  is_default && fail "tcpx is the default although it was removed"
  on_root --install "$scratch/libnccl-net-tcpx_0.1_$arch.deb"
  is_default || fail "the answer is lost when the package is removed and installed again"
  # dpkg deconfigures a package while another one that breaks it is unpacked.
  DPKG_ROOT=$scratch/deb sh "$scratch/deb/var/lib/dpkg/info/libnccl-net-tcpx.prerm" deconfigure
  is_default || fail "the answer is lost when the package is deconfigured"
  on_root --purge libnccl-net-tcpx
  [[ -z $(find "$scratch/deb/var/lib" -maxdepth 1 -name 'libnccl*') ]] || fail "a file is left in /var/lib"
  rm -r "$scratch/deb/usr/share/debconf"
  on_root --install "$scratch/libnccl-net-tcpx_0.1_$arch.deb"
  on_root --purge libnccl-net-tcpx
  listing "$scratch/deb" | diff "$scratch/before" - || fail "the .deb left something behind, or took something along"
  # Another plugin's own file is not ours to replace.
  echo other >"$lib/libnccl-net.so"
  TCPX_DEFAULT=1 on_root --install "$scratch/libnccl-net-tcpx_0.2_$arch.deb"
  [[ $(<"$lib/libnccl-net.so") == other ]] || fail "another plugin's libnccl-net.so was replaced"
  on_root --purge libnccl-net-tcpx
  [[ $(<"$lib/libnccl-net.so") == other ]] || fail "another plugin's libnccl-net.so was removed"
}

on_rpm_root() {
  rpm --root "$scratch/rpm" --dbpath /var/lib/rpm --nodeps --noscripts "$@" >"$scratch/rpm.log" 2>&1 ||
    { fail "rpm $*"; cat "$scratch/rpm.log"; }
}

# Its scripts need a shell in that root: those are read here, and run in a whole system by hand
# (deploy/packaging/README.md).
test_rpm() {
  local lib=$scratch/rpm/usr/lib64
  mkdir -p "$lib" "$scratch"/rpm/var/{lib/rpm,tmp} "$scratch"/rpm/usr/{bin,sbin} \
    "$scratch"/rpm/usr/share/{doc,man/man1,man/man7,man/man8} \
    "$scratch/rpm/usr/share/bash-completion/completions"
  listing "$scratch/rpm" >"$scratch/before"
  on_rpm_root --install "$scratch"/libnccl-net-tcpx-0.1-1.*.rpm
  use "$lib" "$scratch/rpm/usr/bin"
  on_rpm_root --erase libnccl-net-tcpx
  listing "$scratch/rpm" | diff "$scratch/before" - || fail "the .rpm left something behind, or took something along"
}

for script in "$root"/deploy/packaging/scripts/*; do
  [[ $script == */templates ]] || sh -n "$script" || fail "$script is no shell script"
done
pack 0.1 deb >/dev/null
pack 0.2 deb >/dev/null
test_deb
if ! command -v rpmbuild >/dev/null; then
  echo "SKIPPED: the .rpm: no rpmbuild (apt-get install rpm); the .deb was tested"
else
  pack 0.1 rpm >/dev/null
  # rpm has to chroot into its root.
  if ((EUID == 0)); then
    test_rpm
  else
    echo "SKIPPED: the .rpm is packed, but installing it below a folder needs root"
  fi
fi
exit "$failed"
