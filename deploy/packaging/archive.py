"""The .tar.gz: lib, bin and doc below one folder, the same bytes each time.

Purpose: for machines without a package manager, images, and shared folders of a cluster.
"""

import gzip
import io
import tarfile

import layout


def member(path, mode, epoch):
    """A header that says nothing of this machine."""
    info = tarfile.TarInfo(path)
    info.mode, info.mtime = mode, epoch
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def write(entries, build, out):
    """Writes the archive and returns its path."""
    top = "%s-%s" % (layout.NAME, build.version)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tarball:
        for folder in [top] + [top + "/" + path for path in layout.parents(entries)]:
            info = member(folder, 0o755, build.epoch)
            info.type = tarfile.DIRTYPE
            tarball.addfile(info)
        for entry in entries:
            info = member(top + "/" + entry.path, entry.mode, build.epoch)
            if entry.link is None:
                info.size = len(entry.data)
            else:
                info.type, info.linkname = tarfile.SYMTYPE, entry.link
            tarball.addfile(info, io.BytesIO(entry.data or b""))
    path = out / ("%s-%s-linux-%s.tar.gz" % (layout.NAME, build.version, build.arch))
    path.write_bytes(gzip.compress(raw.getvalue(), 6, mtime=0))
    return path
