"""The wheel: the Python package tcpx with the libraries inside, and the programs, which pip installs next to Python.

Purpose: one file for every Python 3 on one processor, the same bytes each time.
Errors:  LayoutError where a library or program needs more of a system than the name of the wheel promises.
Source:  the binary distribution format and the core metadata specification of packaging.python.org; PEP 600
         (manylinux), PEP 639 (licences), PEP 770 (SBOM).
"""

import base64
import hashlib
import stat
import subprocess
import time
import zipfile

import layout

METADATA = """\
Metadata-Version: 2.4
Name: nccl-net-tcpx
Version: {version}
Summary: {summary}
Author: the authors of libnccl-net-tcpx
Keywords: nccl,pytorch,distributed,tcp
License-Expression: {licence}
{licence_files}
{contact}Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{description}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: tools/package
Root-Is-Purelib: false
Tag: {tag}
"""


def metadata(root, entries, build):
    """The text of the file METADATA."""
    legal = layout.folders("wheel", build.arch, build.version)["legal"] + "/"
    paths = [entry.path[len(legal) :] for entry in entries if entry.path.startswith(legal)]
    return METADATA.format(
        version=build.version,
        summary=layout.SUMMARY,
        licence=layout.LICENCE,
        contact="".join(
            "Project-URL: %s, %s\n" % (label, url) for label, url in (("Home", build.url), ("Bugs", build.bugs)) if url
        ),
        licence_files="\n".join("License-File: " + path for path in paths),
        description=(root / "deploy/python/description.md").read_text(),
    )


def record(entries, path):
    """The text of the file RECORD at `path`: sums of all others."""
    lines = []
    for entry in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.data).digest()).rstrip(b"=").decode()
        lines.append("%s,sha256=%s,%d\n" % (entry.path, digest, len(entry.data)))
    return "".join(lines) + path + ",,\n"


def check_symbols(root, entries, scratch):
    """Refuses files that need a newer glibc than the tag says, or any other library."""
    folder, files = scratch / "elf", []
    folder.mkdir()
    for entry in entries:
        if layout.elf_machine(entry.data) is not None:
            files.append(folder / entry.path.rpartition("/")[2])
            files[-1].write_bytes(entry.data)
    command = ["bash", str(root / "deploy/packaging/check_symbols.sh"), *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise layout.LayoutError("not for a wheel: " + done.stdout)


def write(root, entries, build, scratch, out):
    """Writes the wheel and returns its path."""
    check_symbols(root, entries, scratch)
    name = layout.wheel_name(build.version)
    info = name + ".dist-info"
    tag = "py3-none-manylinux_2_28_" + layout.ARCHES[build.arch].rpm
    texts = {"METADATA": metadata(root, entries, build), "WHEEL": WHEEL.format(tag=tag)}
    about = [layout.Entry("%s/%s" % (info, file), 0o644, text.encode(), None) for file, text in texts.items()]
    # What describes the others comes last, so that it can be appended to.
    entries = sorted(entries + about, key=lambda entry: (entry.path.startswith(info), entry.path))
    path = info + "/RECORD"
    entries.append(layout.Entry(path, 0o644, record(entries, path).encode(), None))
    wheel = out / ("%s-%s.whl" % (name, tag))
    with zipfile.ZipFile(wheel, "w") as archive:
        for entry in entries:
            member = zipfile.ZipInfo(entry.path, time.gmtime(build.epoch)[:6])
            member.create_system = 3  # Unix: the mode is in external_attr
            member.external_attr = (stat.S_IFREG | entry.mode) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, entry.data, compresslevel=6)
    return wheel
