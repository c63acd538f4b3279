"""The .deb, by dpkg-deb.

Purpose: dpkg-deb takes times from SOURCE_DATE_EPOCH and owner 0 for everything; gzip, which every dpkg reads and which
         packs alike on any number of processors.
"""

import hashlib
import os
import subprocess

import layout
import tree

CONTROL = """\
Package: {name}
Version: {version}
Architecture: {arch}
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: libc6 (>= 2.28), debconf (>= 0.5) | debconf-2.0
Recommends: libgcrypt20, python3
Section: libs
Priority: optional
{contact}Description: {summary}
 Moves the traffic of NCCL between machines that have Ethernet and no RDMA,
 over several sockets per connection. Set NCCL_NET_PLUGIN=tcpx to use it.
"""
SCRIPTS = ("config", "preinst", "postinst", "prerm", "postrm")
MAINTAINER = "libnccl-net-tcpx <libnccl-net-tcpx@localhost>"


def control(entries, build):
    """The text of the file control."""
    kib = sum((len(entry.data or b"") + 1023) // 1024 for entry in entries)
    names = dict(name=layout.NAME, summary=layout.SUMMARY, maintainer=build.vendor or MAINTAINER)
    names["contact"] = layout.contact(Homepage=build.url, Bugs=build.bugs)
    return CONTROL.format(version=build.version, arch=build.arch, kib=kib, **names)


def md5sums(entries):
    """The text of the file md5sums, which names no links."""
    files = [entry for entry in entries if entry.link is None]
    return "".join("%s  %s\n" % (hashlib.md5(entry.data).hexdigest(), entry.path) for entry in files)


def write(root, entries, build, scratch, out):
    """Writes the package and returns its path."""
    folder = scratch / "deb"
    tree.lay(entries, folder, build.epoch)
    meta = folder / "DEBIAN"
    meta.mkdir()
    texts = {"control": control(entries, build), "md5sums": md5sums(entries)}
    texts.update((name, tree.script(root, name, layout.ARCHES[build.arch].deb_lib))
                 for name in SCRIPTS + ("templates",))
    for name, text in texts.items():
        (meta / name).write_text(text)
        (meta / name).chmod(0o755 if name in SCRIPTS else 0o644)
    tree.settle(folder, build.epoch)
    path = out / ("%s_%s_%s.deb" % (layout.NAME, build.version, build.arch))
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z6", "--build", str(folder), str(path)]
    environment = dict(os.environ, SOURCE_DATE_EPOCH=str(build.epoch), LC_ALL="C")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return path
