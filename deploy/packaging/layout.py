"""What a package holds, read from files.txt: entries with a destination, a mode and the bytes or the link's target.

Purpose: one table for every kind of package. Nothing here depends on the clock, the caller's umask, language or order
         of a folder's files.
Errors:  LayoutError says which line of the table and why.
"""

import collections
import functools
import os
import pathlib
import re
import tarfile

import man

# link: the target, or None; data: the bytes, of a file.
Entry = collections.namedtuple("Entry", "path mode data link")
# The names of a processor: Debian's, rpm's, and the folder of libraries that each system's loader searches.
Arch = collections.namedtuple("Arch", "deb rpm deb_lib rpm_lib machine")

ARCHES = {
    "amd64": Arch("amd64", "x86_64", "usr/lib/x86_64-linux-gnu", "usr/lib64", 62),
    "arm64": Arch("arm64", "aarch64", "usr/lib/aarch64-linux-gnu", "usr/lib64", 183),
}
NAME = "libnccl-net-tcpx"
SUMMARY = "NCCL network plugin over plain TCP"
# Covers the packed files and the libraries linked into them.
LICENCE = "Apache-2.0 AND MIT AND ISC AND (GPL-3.0-or-later WITH GCC-exception-3.1)"


class LayoutError(Exception):
    """A line of the table that can't be followed."""


def wheel_name(version):
    """How the file name of a wheel begins, and its folders for what is no Python package."""
    return "nccl_net_tcpx-" + version


def folders(kind, arch, version=""):
    """The places of files.txt, and of the SBOM, in one kind of package: deb, rpm, tar or wheel. None: not in that one.

    Only a wheel's have the version in them.
    """
    if kind == "wheel":
        top = wheel_name(version)
        found = dict.fromkeys(("man", "man7", "man8", "doc", "share", "complete", "admin"))
        found.update(lib="tcpx/lib", bin=top + ".data/scripts", python="tcpx")
        return dict(found, legal=top + ".dist-info/licenses", sbom=top + ".dist-info/sboms")
    if kind == "tar":
        found, top = {"lib": "lib", "doc": "doc", "share": "share", "admin": None, "man8": None}, ""
    else:
        lib = ARCHES[arch].deb_lib if kind == "deb" else ARCHES[arch].rpm_lib
        found, top = {"lib": lib, "doc": "usr/share/doc/" + NAME, "share": "usr/share/" + NAME}, "usr/"
        found.update(admin="usr/sbin", man8="usr/share/man/man8")
    found.update(bin=top + "bin", man=top + "share/man/man1", man7=top + "share/man/man7")
    found["complete"] = top + "share/bash-completion/completions"
    return dict(found, legal=found["doc"], sbom=found["doc"], python=None)


def contact(**fields):
    """Lines of a package's description, for those fields that are known."""
    return "".join("%s: %s\n" % item for item in fields.items() if item[1])


def without_dead_links(text, source, packed):
    """A page in which a link to what is not packed is its text. `packed`: the sources of all pages and pictures."""
    def kept(match):
        label, target = match.groups()
        path = os.path.normpath(os.path.join(os.path.dirname(source), target.partition("#")[0]))
        is_here = target.startswith("#") or re.match(r"\w+:", target) or path in packed
        return match.group(0) if is_here else label
    return re.sub(r"(?<!!)\[([^\]\[]*)\]\(([^()\s]+)\)", kept, text)


def destination(text, places):
    """The path that a line of the table names, or None where this kind of package leaves it out."""
    place = text[1:].partition("}")[0]
    return None if places[place] is None else text.format(**places)


def elf_machine(data):
    """The processor that a library or program is for, as ELF numbers them; None for anything else."""
    return int.from_bytes(data[18:20], "little") if data[:4] == b"\x7fELF" else None


@functools.lru_cache(maxsize=None)
def member(tarball, name):
    """The bytes of a file in a tarball, which is read no further than there."""
    with tarfile.open(tarball) as opened:
        for info in opened:
            if info.name == name:
                return opened.extractfile(info).read()
    raise KeyError("no %s in %s" % (name, tarball))


class Table:
    """files.txt, with where its sources are."""

    def __init__(self, root, built):
        self.root = pathlib.Path(root)
        self.built = pathlib.Path(built)

    def rows(self):
        """Yields the words of each line that says something."""
        for number, line in enumerate((self.root / "deploy/packaging/files.txt").read_text().splitlines(), 1):
            words = line.split()
            if words and not words[0].startswith("#"):
                yield number, words

    def entries(self, kind, arch, version=""):
        """Returns the entries of one kind of package, sorted by destination."""
        places, found = folders(kind, arch, version), {}
        self.packed = {words[1] for _, words in self.rows() if words[0] == "file" and words[2].startswith("{doc}")}
        self.lib = "/" + places["lib"]
        for number, (what, *words) in self.rows():
            path = destination(words[-1], places)
            # pip makes no links.
            if path is None or kind == "wheel" and what in ("link", "shared"):
                continue
            if path in found:
                raise LayoutError("files.txt:%d: %s is there twice" % (number, path))
            try:
                entry = self.entry(what, words[:-1], path, arch, version)
            except (OSError, KeyError, ValueError) as error:
                raise LayoutError("files.txt:%d: %s" % (number, error)) from error
            if what != "shared" or kind == "tar":
                found[path] = entry
        return [found[path] for path in sorted(found)]

    def entry(self, what, source, path, arch, version):
        """Returns the entry of one line."""
        if what in ("link", "shared"):
            return Entry(path, 0o777, None, source[0])
        if what == "member":
            return Entry(path, 0o644, member(self.root / "third_party/distdir" / source[0], source[1]), None)
        if what == "man":
            name, section, _ = pathlib.PurePosixPath(path).name.split(".")
            return Entry(path, 0o644, man.page(name, section, source[0], (self.root / source[0]).read_bytes()), None)
        if what == "man7":
            return Entry(path, 0o644, man.parameters_page((self.root / source[0]).read_text()), None)
        if what == "versioned":
            text = (self.root / source[0]).read_text().replace("@VERSION@", version).replace("@LIB@", self.lib)
            return Entry(path, 0o755 if text.startswith("#!") else 0o644, text.encode(), None)
        if what not in ("built", "file", "system"):
            raise ValueError("no kind of line: " + what)
        folder = {"built": self.built, "file": self.root, "system": pathlib.Path("/")}[what]
        data = (folder / source[0]).read_bytes()
        if what == "file" and path.endswith(".md"):
            data = without_dead_links(data.decode(), source[0], self.packed).encode()
        if what == "built" and elf_machine(data) != ARCHES[arch].machine:
            raise ValueError("%s is not built for %s" % (source[0], arch))
        executable = what == "built" and not path.endswith(".so") or data[:2] == b"#!"
        return Entry(path, 0o755 if executable else 0o644, data, None)


def parents(entries):
    """Returns every folder that the entries need, outermost first."""
    found = {str(parent) for entry in entries for parent in pathlib.PurePosixPath(entry.path).parents}
    return sorted(found - {"."})
