#!/usr/bin/env python3
"""quoted_log_test: each log line that the pages quote is one that the sources can print.

usage: quoted_log_test.py WORKSPACE

A quoted line is one of a block marked "log", or what follows "NET/tcpx:" in a block or between backticks. "..." in it
replaces what varies; all other parts must be in the string literals of one source file, in that order.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve().parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("deploy/**/*.md"))]
FOLDERS = ("net_socket", "common", "nccl", "profiler")
SOURCES = (".h", ".cc")


def literals(path):
    """The string literals of a source file, one after the other; those that the compiler joins are one."""
    text = re.sub(r"^\s*(//.*|#include.*)$", "", path.read_text(), flags=re.M)
    joined = re.sub(r'"\s*\n\s*"', "", text)
    return "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)).replace('\\"', '"')


def pieces(line):
    """What has to be found of a quoted line."""
    return [piece for piece in re.split(r"\.\.\.", line) if len(piece.strip()) > 2]


def has_all(text, wanted):
    """Does the text have all pieces, in order?"""
    at = 0
    for piece in wanted:
        found = text.find(piece.strip(), at)
        if found < 0:
            return False
        at = found + len(piece.strip())
    return True


def quoted(page):
    """Yields (number, line) of the blocks marked "log", and what other blocks and backticks say after "NET/tcpx:"."""
    inside = ""
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            inside = "" if inside else line
        elif inside == "```log":
            yield number, line
        elif inside or line.startswith("    "):
            yield from ((number, text) for text in re.findall(r"NET/tcpx: (.*)", line))
        else:
            yield from ((number, text) for text in re.findall(r"`[^`]*NET/tcpx: ([^`]*)`", line))


def main():
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES]
    sources = [literals(path) for path in paths]
    lines = [(page.name, number, line) for page in PAGES for number, line in quoted(page.read_text())]
    faults = 0
    if has_all("\n".join(sources), ["a line that no source has"]) or len(lines) < 20 or len(sources) < 50 \
            or len({name for name, _, _ in lines}) < 3:
        sys.exit("FAILED: the test reads nothing")
    for name, number, line in lines:
        wanted = pieces(line)
        if not wanted or not any(has_all(text, wanted) for text in sources):
            print("FAILED: %s:%d: no source prints: %s" % (name, number, line))
            faults += 1
    print("%d quoted lines, %d not found" % (len(lines), faults))
    sys.exit(1 if faults else 0)


main()
