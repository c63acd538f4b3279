#!/usr/bin/env python3
"""site_test: the pages render as a site whose links, search and diagrams work, and what is wrong is noticed.

usage: site_test.py WORKSPACE

Skipped, aloud, where Node.js or markdown-it is not there: tools/setup installs it where there is npm.
"""

import html.parser
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve().parent
CACHE = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache/tcpx-tools/site/node_modules"
MODULES = pathlib.Path(os.environ.get("TCPX_SITE_MODULES", CACHE))


class Page(html.parser.HTMLParser):
    """What a page links to, and the places in it that others can link to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.cells = [], set(), 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        self.anchors |= {attributes["id"]} if "id" in attributes else set()
        self.cells += tag == "td"


def render(root, out):
    command = ["node", str(ROOT / "docs/site/render.mjs"), str(root), str(MODULES), str(out)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_links(out):
    """Returns how many links there are, after a line for each that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in out.rglob("*.html")}
    seen, faults = 0, 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            seen += 1
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.is_file() or anchor and anchor not in pages[target].anchors:
                print("FAILED: %s: %s leads nowhere" % (path.relative_to(out), link))
                faults += 1
    print("%d pages, %d links, %d lead nowhere" % (len(pages), seen, faults))
    if faults or len(pages) < 20 or seen < 500 or pages[(out / "docs/parameters.html").resolve()].cells < 100:
        sys.exit("FAILED: the site")


def check_that_faults_are_seen(scratch):
    """A tree with a link to nowhere, a link to a heading that is not there, and a diagram that is none."""
    tree = scratch / "tree"
    (tree / "docs/site").mkdir(parents=True)
    for name in ("style.css", "site.js"):
        shutil.copy(ROOT / "docs/site" / name, tree / "docs/site" / name)
    diagram = "\n```mermaid\nsequenceDiagram\n  A-nonsense\n```\n"
    (tree / "README.md").write_text("# A\n\n[b](docs/README.md) [c](nowhere.md) [d](docs/README.md#e)\n" + diagram)
    (tree / "docs/README.md").write_text("# Pages\n\n[changes](../CHANGELOG.md)\n")
    (tree / "CHANGELOG.md").write_text("# Changes\n")
    done = render(tree, scratch / "faulty")
    wanted = ["README.md: nowhere.md leads nowhere", "README.md: docs/README.md#e: no such heading"]
    if (MODULES / "mermaid").is_dir():
        wanted += ["README.md: a diagram: Parse error", "3 faults"]
    if done.returncode != 1 or not all(text in done.stdout for text in wanted):
        sys.exit("FAILED: wrong links went unnoticed: exit code %d, %s" % (done.returncode, done.stdout))


def check_order(out):
    """On a phone the page comes before the navigation: what is first in the file is first on the screen."""
    for path in out.rglob("*.html"):
        text = path.read_text()
        if not 0 < text.find("<main>") < text.find("<nav>"):
            sys.exit("FAILED: %s: the navigation comes before the page" % path.relative_to(out))


def check_search(out):
    """What the search box would list for some words, in the page's own code."""
    script = """
      globalThis.window = {};
      const fs = require("fs"), vm = require("vm");
      vm.runInThisContext(fs.readFileSync("search-index.js", "utf8"));
      vm.runInThisContext(fs.readFileSync("site.js", "utf8"));
      for (const words of JSON.parse(process.argv[1]))
        console.log((findSections(window.searchIndex, words)[0] ?? ["nothing"])[0]);
    """
    wanted = {
        "TCPX_LANES": "docs/parameters.html#tcpx_lanes",
        "gpudirect google": "docs/faq.html#is-this-googles-gpudirect-tcpx",
        "process-stopped": "docs/observability.html#verdicts",
        "no such words here": "nothing",
    }
    done = subprocess.run(["node", "-e", script, json.dumps(list(wanted))], cwd=out, stdout=subprocess.PIPE, text=True)
    if done.stdout.split() != list(wanted.values()):
        sys.exit("FAILED: the search finds %s" % done.stdout.split())


def check_diagrams(out):
    """Pages with diagrams load mermaid from the site itself; others do not."""
    if not (MODULES / "mermaid").is_dir():
        return print("SKIPPED: no mermaid here (tools/setup --site installs its 130 MB): diagrams stay text")
    page = (out / "docs/architecture.html").read_text()
    if page.count('<pre class="mermaid">sequenceDiagram') < 3 or '<script src="../mermaid.min.js">' not in page:
        sys.exit("FAILED: no diagrams in docs/architecture.html")
    if not (out / "mermaid.min.js").is_file() or "mermaid" in (out / "docs/doctor.html").read_text():
        sys.exit("FAILED: mermaid is missing, or loaded for nothing")


def main():
    if not shutil.which("node") or not (MODULES / "markdown-it").is_dir():
        print("SKIPPED: no Node.js with markdown-it here (apt-get install npm; tools/setup)")
        return
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name).resolve()
        done = render(ROOT, scratch / "site")
        print(done.stdout, end="")
        if done.returncode:
            sys.exit("FAILED: the site could not be rendered")
        check_links(scratch / "site")
        check_order(scratch / "site")
        check_search(scratch / "site")
        check_diagrams(scratch / "site")
        check_that_faults_are_seen(scratch)


main()
