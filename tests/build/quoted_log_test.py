#!/usr/bin/env python3
"""quoted_log_test: each log line that docs/troubleshooting.md quotes is one that the sources can print.

usage: quoted_log_test.py WORKSPACE

A quoted line is one of a block marked "log"; "..." in it stands for what varies. What lies between has to stand in the
string literals of one source file, in that order.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve().parent
PAGE = ROOT / "docs/troubleshooting.md"
FOLDERS = ("net_socket", "common", "nccl", "profiler")


def literals(path):
    """The string literals of a source file, one after the other; those that the compiler joins are one."""
    text = re.sub(r"^\s*(//.*|#include.*)$", "", path.read_text(), flags=re.M)
    joined = re.sub(r'"\s*\n\s*"', "", text)
    return "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)).replace('\\"', '"')


def pieces(line):
    """What has to be found of a quoted line."""
    return [piece for piece in re.split(r"\.\.\.", line) if len(piece.strip()) > 2]


def stands_in(text, wanted):
    """Do all pieces stand there, in order?"""
    at = 0
    for piece in wanted:
        found = text.find(piece.strip(), at)
        if found < 0:
            return False
        at = found + len(piece.strip())
    return True


def quoted(page):
    """Yields (number, line) of the blocks marked "log"."""
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```log"
        elif inside:
            yield number, line


def main():
    sources = [literals(path) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.cc"))]
    lines = list(quoted(PAGE.read_text()))
    faults = 0
    if stands_in("\n".join(sources), ["a line that no source has"]) or len(lines) < 20 or len(sources) < 50:
        sys.exit("FAILED: the test reads nothing")
    for number, line in lines:
        wanted = pieces(line)
        if not wanted or not any(stands_in(text, wanted) for text in sources):
            print("FAILED: %s:%d: no source prints: %s" % (PAGE.name, number, line))
            faults += 1
    print("%d quoted lines, %d not found" % (len(lines), faults))
    sys.exit(1 if faults else 0)


main()
