#!/usr/bin/env python3
"""layers: the arrows between the folders of the sources, and whether folders, files and functions keep their measure.

usage: layers.py FILE_IN_THE_ROOT      for example WORKSPACE; links are followed, and the folder it lies in is read

It prints each arrow between two folders with the number of #include lines that make it, then what is wrong:

  climb      a file includes a header of a folder that is not below its own. The order is ORDER, with the folders of
             net_socket as net_socket/layers.bzl has them. Two folders of one line of ORDER do not see each other.
  stray      a source lies in no folder of ORDER
  missing    an include in quotes names no file of the project
  file       a .h or .cc has more than 400 lines, tests included
  function   a function outside tests/ has more than 40 lines, from the line where its declaration begins to its closing
             brace, with what comments and blank lines are between; a lambda counts where it is written
  includes   a header of net_socket/ includes more than 8 headers of the project

exit code: 0 all is well; 1 something is wrong; 2 wrong usage
"""

import collections
import os
import re
import sys

# Top to bottom. A file belongs to the longest path that holds it.
ORDER = [
    ["tests"],
    ["bench/fabric", "bench/rma_bench"],
    ["bench/net_bench", "bench/nccl_bench", "bench/gpu_probe", "tools/doctor", "tools/parameters"],
    ["bench/command_line", "bench/netns/wire", "bench/netns/heal"],
    # What only tests and benchmarks use: the plugin knows nothing of it.
    ["nccl/client", "common/payload"],
    # The other library.
    ["profiler"],
    ["net_socket"],  # in its place the folders of net_socket/layers.bzl
    ["nccl"],
    ["common"],
]

# What an include of the project begins with; the others are those of Abseil and the like.
TOP_FOLDERS = {folder.split("/")[0] for names in ORDER for folder in names}

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 40
HEADER_INCLUDES_MAX = 8

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def order_of(root):
    """ORDER with the folders of net_socket in it."""
    with open(os.path.join(root, "net_socket/layers.bzl")) as file:
        layers = re.search(r"^_LAYERS = \[(.*?)^\]", file.read(), re.MULTILINE | re.DOTALL)
    folders = re.findall(r'"(\w+)"', layers.group(1))
    at = ORDER.index(["net_socket"])
    return ORDER[:at] + [["net_socket/" + folder] for folder in folders] + ORDER[at + 1:]


def read_sources(root):
    """{path: text} of every .h and .cc. Hidden folders, and links as Bazel makes them, are not of the project."""
    sources = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name[0] != "." and not os.path.islink(os.path.join(folder, name))]
        for name in files:
            if name.endswith((".h", ".cc")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    sources[os.path.relpath(path, root)] = file.read()
    return sources


class Folders:
    """Which folder a path belongs to, and how high it lies."""

    def __init__(self, order):
        self.height = {folder: -row for row, names in enumerate(order) for folder in names}

    def of(self, path):
        while path:
            path = os.path.dirname(path)
            if path in self.height:
                return path
        return None

    def allowed(self, above, below):
        return above == below or self.height[above] > self.height[below]


def short(folder):
    """A folder as the table shows it: those of net_socket by their own names."""
    return folder[len("net_socket/"):] if folder.startswith("net_socket/") else folder


def project_includes(text):
    return [name for name in INCLUDE.findall(text) if name.split("/")[0] in TOP_FOLDERS]


def check_includes(sources, folders):
    """({(from, to): lines}, what is wrong)."""
    arrows = collections.Counter()
    wrong = []
    for path, text in sorted(sources.items()):
        here = folders.of(path)
        if here is None:
            wrong.append("stray: %s lies in no folder that has a place in the order" % path)
            continue
        for name in project_includes(text):
            there = folders.of(name)
            if name not in sources:
                wrong.append("missing: %s includes %s, which is no file" % (path, name))
            if there in (None, here):
                continue
            arrows[here, there] += 1
            if not folders.allowed(here, there):
                wrong.append("climb: %s includes %s (%s -> %s)" % (path, name, short(here), short(there)))
    return arrows, wrong


def check_lengths(sources):
    wrong = []
    for path, text in sorted(sources.items()):
        lines = text.count("\n")
        if lines > FILE_LINES_MAX:
            wrong.append("file: %s has %d lines, not at most %d" % (path, lines, FILE_LINES_MAX))
        if path.startswith("tests/"):
            continue
        for name, first, lines in functions(text):
            if lines > FUNCTION_LINES_MAX:
                wrong.append("function: %s:%d: %s has %d lines, not at most %d" %
                             (path, first, name, lines, FUNCTION_LINES_MAX))
    return wrong


def check_headers(sources):
    wrong = []
    for path, text in sorted(sources.items()):
        if not path.startswith("net_socket/") or not path.endswith(".h"):
            continue
        count = len(project_includes(text))
        if count > HEADER_INCLUDES_MAX:
            wrong.append("includes: %s has %d headers of the project, not at most %d" %
                         (path, count, HEADER_INCLUDES_MAX))
    return wrong


# What no brace in it counts: comments, raw strings, strings, characters, directives with the lines they go on to. A
# quote inside a number (1'000) is none.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE | re.DOTALL)


def plain(text):
    """The text with blanks in place of what is OPAQUE, its lines kept."""
    return OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def functions(text):
    """(name, first line, lines) of each function with a body. Lambdas and local classes are part of it."""
    found = []
    scopes = []  # of each open brace: "scope" (namespace, class), "value", or (name, line) of a function
    head = []  # (character, line) of what may be a declaration: what came since the last ; or scope
    line = 1
    for character in plain(text):
        outside = all(scope == "scope" for scope in scopes)
        if character == "{":
            kind = brace_kind(head) if outside else "value"
            scopes.append(kind)
            if kind != "value":
                head = []
        elif character == "}" and scopes:
            scope = scopes.pop()
            if isinstance(scope, tuple):
                found.append((scope[0], scope[1], line - scope[1] + 1))
            if scope == "value":
                head.append((character, line))
            else:
                head = []
        elif outside and character == ";" and depth(head) == 0:
            head = []
        elif outside:
            head.append((character, line))
        line += character == "\n"
    return found


def depth(head):
    return sum((character == "(") - (character == ")") for character, _ in head)


# Blanks and access specifiers, which are on lines of their own before a declaration.
ACCESS = re.compile(r"\s*((public|protected|private)\s*:\s*)*")


def brace_kind(head):
    """What a brace after `head` opens, where only namespaces and classes are around it."""
    text = "".join(character for character, _ in head)
    begin = ACCESS.match(text).end()
    outer = without_template(outermost(text[begin:]).strip())
    tail = outer[outer.rfind(")") + 1:].strip()
    if re.match(r"(inline\s+)?namespace\b|extern\s*$", outer):
        return "scope"
    qualifiers = re.fullmatch(r"(const|noexcept|override|final|try|&|\s)*|.*->.*", tail) is not None
    if re.match(r"(typedef\s+|constexpr\s+|const\s+|static\s+|inline\s+)*(class|struct|union|enum)\b", outer):
        if "(" not in outer or not qualifiers:
            return "value" if "=" in outer else "scope"
    # A member that is set with braces, in front of a constructor's body: `A() : b_{1} {`.
    if re.search(r"\)\s*:[^:]", outer) and re.search(r"\w$", outer):
        return "value"
    before = re.sub(r"operator\s*\S+?(?=\()", "operator", outer)
    if "(" not in outer or "=" in before or depth(head) > 0:
        return "value"
    return (function_name(outer), head[begin][1])


def outermost(text):
    """The text without what is in parentheses."""
    level = 0
    kept = []
    for character in text:
        level -= character == ")"
        if level <= 0:
            kept.append(character)
        level += character == "("
    return "".join(kept)


def without_template(text):
    while text.startswith("template"):
        level = 0
        for at, character in enumerate(text):
            level += (character == "<") - (character == ">")
            if character == ">" and level == 0:
                break
        text = text[at + 1:].strip()
    return text


def function_name(outer):
    words = re.findall(r"(operator\s*[^\s(]+|[\w:~]+)\s*\(", outer)
    words = [word for word in words if word != "__attribute__"]
    return words[0] if words else "?"


def check(root):
    """(the table of arrows, what is wrong), as lines."""
    order = order_of(root)
    sources = read_sources(root)
    folders = Folders(order)
    arrows, wrong = check_includes(sources, folders)
    arrows_down = sorted(arrows, key=lambda arrow: [(-folders.height[folder], folder) for folder in arrow])
    table = ["%s -> %s %d" % (short(arrow[0]), short(arrow[1]), arrows[arrow]) for arrow in arrows_down]
    return table, wrong + check_lengths(sources) + check_headers(sources)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    table, wrong = check(os.path.dirname(os.path.realpath(arguments[0])))
    print("\n".join(table))
    print("\n%d arrows, %d wrong" % (len(table), len(wrong)))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
