#!/usr/bin/env python3
"""links_test: every link of a page leads to a file of this repository that is there, and to a heading that it has.

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


def main():
    faults, seen = 0, 0
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
