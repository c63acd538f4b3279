#!/usr/bin/env python3
"""links_test: every link of a page leads to a file of this repository, and to a heading that the file has; every
page of docs/ is in its index, and in the packages.

usage: links_test.py WORKSPACE

Links to the world are not followed.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve().parent
SKIPPED = {"third_party/distdir", "tests/fuzz/found", "dist"}


def pages():
    """Every page that is not somebody else's."""
    for path in sorted(ROOT.rglob("*.md")):
        relative = str(path.relative_to(ROOT))
        if not relative.startswith((".", "bazel-")) and not any(relative.startswith(skipped) for skipped in SKIPPED):
            yield path


def anchors(path):
    """The names of a page's headings, as renderers make them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(path):
    """Yields the targets of a page's links, code left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.S)
    yield from re.findall(r"\]\(([^)\s]+)\)", text)


def unlisted():
    """Pages of docs/ that docs/README.md or the table of the packages leave out."""
    index = set(re.findall(r"^\| \[([^\]]+)\]\(\1\)", (ROOT / "docs/README.md").read_text(), re.M))
    packed = (ROOT / "deploy/packaging/files.txt").read_text()
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name != "README.md" and path.name not in index:
            yield "docs/README.md does not list " + path.name
        if "\nfile docs/%s " % path.name not in packed:
            yield "deploy/packaging/files.txt does not list docs/" + path.name


def main():
    faults, seen = 0, 0
    for fault in unlisted():
        print("FAILED: " + fault)
        faults += 1
    for page in pages():
        for link in links(page):
            if re.match(r"\w+:", link):
                continue
            seen += 1
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            wrong = not target.exists() or bool(anchor) and target.suffix == ".md" and anchor not in anchors(target)
            if wrong:
                print("FAILED: %s: %s leads nowhere" % (page.relative_to(ROOT), link))
                faults += 1
    print("%d links, %d lead nowhere" % (seen, faults))
    sys.exit(1 if faults or seen < 50 else 0)


main()
