#!/usr/bin/env python3
"""Packs what Bazel has built: .deb, .rpm, .tar.gz and a Python wheel, each with an SBOM of its own.

usage: package.py --root DIR --built DIR --arch amd64|arm64 --version V --epoch SECONDS --commit ID --out DIR
                  [--url URL] [--vendor NAME] [--bugs URL] [KIND...]

tools/package calls it with what the repository says. KIND is deb, rpm, tar or wheel; without one, all four. Prints the
paths of what it wrote.

exit codes: 0 done; 1 something is missing or a packing tool failed; 2 wrong use
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

import archive
import deb
import layout
import rpm
import sbom
import wheel

Build = collections.namedtuple("Build", "version arch epoch commit url vendor bugs")
KINDS = ("deb", "rpm", "tar", "wheel")


def with_sbom(root, entries, build, kind):
    """Returns the entries and the document about them."""
    path = layout.folders(kind, build.arch, build.version)["sbom"] + "/sbom.spdx.json"
    data = sbom.document(root, entries, build, kind, path)
    return sorted(entries + [layout.Entry(path, 0o644, data, None)])


def pack(table, kind, build, out):
    """Writes one package and returns its path."""
    entries = with_sbom(table.root, table.entries(kind, build.arch, build.version), build, kind)
    if kind == "tar":
        return archive.write(entries, build, out)
    with tempfile.TemporaryDirectory() as scratch:
        packer = {"deb": deb, "rpm": rpm, "wheel": wheel}[kind]
        return packer.write(table.root, entries, build, pathlib.Path(scratch), out)


def one_line(text):
    """An argument that becomes a field of a package."""
    if "\n" in text:
        raise argparse.ArgumentTypeError("more than a line")
    return text


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="package.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("root", "built", "out"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path)
    parser.add_argument("--arch", required=True, choices=sorted(layout.ARCHES))
    for name in ("version", "commit"):
        parser.add_argument("--" + name, required=True)
    for name in ("url", "vendor", "bugs"):
        parser.add_argument("--" + name, default="", type=one_line)
    parser.add_argument("--epoch", required=True, type=int)
    parser.add_argument("kinds", nargs="*", choices=KINDS + ([],), metavar="KIND")
    return parser.parse_args()


def main():
    given = arguments()
    build = Build(given.version, given.arch, given.epoch, given.commit, given.url, given.vendor, given.bugs)
    given.out.mkdir(parents=True, exist_ok=True)
    table = layout.Table(given.root.resolve(), given.built.resolve())
    try:
        for kind in given.kinds or KINDS:
            print(pack(table, kind, build, given.out.resolve()))
    except (layout.LayoutError, OSError, KeyError, subprocess.CalledProcessError) as error:
        sys.exit("package.py: %s" % error)


if __name__ == "__main__":
    main()
