#!/usr/bin/env python3
"""shape: how large the classes of the product are, and the product itself.

usage: shape.py FILE_IN_THE_ROOT      for example WORKSPACE; links are followed, and the folder it lies in is read

It prints the largest ten of each number, then what is over its limit:

  methods    declared in a class, with constructors, operators and friends with a body, deleted ones too; those of
             nested classes do not count. In parentheses the public ones. Not more than 35
  members    of a class, with its constants: not more than 20. A record, which is a struct with all in public, has no
             limit
  files      .cc files that define methods of a class: not more than 1
  interface  methods of a class with a pure one and no member that is not a constant, without destructor and
             constructors: not more than 10
  not pure   of these, those with a body: none
  empty      virtual methods of another class with a pure one whose body does nothing, or returns a constant: none. Who
             forgets to override one hears nothing
  together   the methods of classes that are two ends of one thing, see TOGETHER
  lines      of all .h and .cc of the product: not more than 37,400

Classes in .cc files count too. KNOWN has what may be over its limit for now, and the most that it may have. An entry
that is not needed is wrong too.

exit code: 0 all is well; 1 something is wrong; 2 wrong usage
"""

import os
import re
import sys

# Bazel's links lead to the sources: nothing is written next to them.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import layers  # pylint: disable=wrong-import-position

PRODUCT = ("common/", "nccl/", "net_socket/", "profiler/")
# What only tests and benchmarks use.
NOT_PRODUCT = ("common/payload/", "nccl/client/")

METHODS_MAX = 35
MEMBERS_MAX = 20
FILES_MAX = 1
INTERFACE_METHODS_MAX = 10
LINES_MAX = 37400
TOGETHER = {("Comm", "SendComm"): 70}

LARGEST = 10

# What is over its limit for now: {(kind, name): number}.
KNOWN = {
    ("lines", "the product"): 41092,
}


class Class:
    """What the body of a class declares."""

    def __init__(self, name, path, first_access):
        self.name = name  # with the classes that it is nested in
        self.path = path
        self.access = first_access
        self.is_record = first_access == "public"
        self.methods = 0
        self.public = 0
        self.members = 0
        self.constants = 0
        self.pure = 0
        self.special = 0  # constructors and destructors
        self.empty = 0
        self.files = set()

    @property
    def is_interface(self):
        return self.pure > 0 and self.members == self.constants

    @property
    def called(self):
        """Methods of an interface as its users count them."""
        return self.methods - self.special


# What a declaration is without: attributes, and macros that say what a mutex guards.
ATTRIBUTES = re.compile(
    r"\[\[.*?\]\]|\b(?:TCPX|ABSL)_[A-Z_]+(?:\s*\([^()]*(?:\([^()]*\)[^()]*)*\))?|\balignas\s*\([^)]*\)")
NO_METHOD = re.compile(r"(using|typedef|static_assert|enum|template\s*<.*>\s*friend)\b")
CLASS_HEAD = re.compile(r"(?:template\s*<.*?>\s*)?(class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*)?([\w:]+)", re.DOTALL)
NOTHING = re.compile(r"\s*(return\s*(false|true|\{\}|nullptr|-?\d+)\s*;)?\s*")
ACCESS = re.compile(r"\s*(public|protected|private)\s*$")


def without_angles(text):
    """The text without what templates are given: `std::function<void()> f` has no parentheses then."""
    text = re.sub(r"operator\s*(<=>|<<|>>|<=|>=|->|<|>)", "operator_", text)
    text = text.replace("->", "  ")
    kept = []
    level = 0
    for at, character in enumerate(text):
        if character == "<" and (level > 0 or re.search(r"[\w:]\s*$", text[:at])):
            level += 1
        elif character == ">" and level > 0:
            level -= 1
        elif level == 0:
            kept.append(character)
    return "".join(kept)


def split_outermost(text, separator):
    """The parts of the text between separators that are in no parentheses or braces."""
    parts = [""]
    level = 0
    for character in text:
        level += (character in "({[") - (character in ")}]")
        if character == separator and level == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def declare(statement, body, of):
    """Counts one declaration of a class. `body`: of a method, which follows it; None: it has none here."""
    text = ATTRIBUTES.sub(" ", statement).strip()
    if not text or NO_METHOD.match(text):
        return
    friend = text.startswith("friend")
    plain = without_angles(layers.without_template(text))
    declared = split_outermost(re.sub(r"operator\s*(==|!=|=|\(\)|\[\]|[^\w\s(]+)", "operator_", plain), "=")[0]
    is_method = body is not None or re.match(r"[^(]*\((?!\s*\*)", declared) is not None  # `void (*call)();` is a member
    if friend and body is None:
        return
    if re.fullmatch(r"(class|struct|union|enum)\s+[\w:]+\s*(final)?", declared.strip()):
        return
    if is_method:
        declare_method(plain, declared, body, of)
        return
    count = len(split_outermost(plain, ","))
    of.members += count
    if re.match(r"(static\s+|inline\s+)*(constexpr|static\s+const)\b|static\s+constexpr\b", plain):
        of.constants += count


def declare_method(plain, declared, body, of):
    of.methods += 1
    of.public += of.access == "public"
    name = re.search(r"(~?\w+)\s*\(", declared)
    own = of.name.split("::")[-1]
    special = name is not None and name.group(1).lstrip("~") == own
    of.special += special
    of.pure += re.search(r"=\s*0\s*$", plain) is not None
    of.empty += not special and plain.startswith("virtual") and body is not None and NOTHING.fullmatch(body) is not None


def closing(text, begin):
    """Where the brace at `begin` closes."""
    level = 0
    for at in range(begin, len(text)):
        level += (text[at] == "{") - (text[at] == "}")
        if level == 0:
            return at
    return len(text) - 1


def read_body(text, of, found):
    """Reads what is between the braces of a class, or of a file or namespace, where `of` is None."""
    head = ""
    at = 0
    while at < len(text):
        character = text[at]
        if of is not None and character == ":" and text[at:at + 2] != "::" and ACCESS.match(head):
            of.access = ACCESS.match(head).group(1)
            of.is_record &= of.access == "public"
            head = ""
        elif character == "{":
            end = closing(text, at)
            head, at = read_braces(head, text[at + 1:end], of, found), end
        elif character == ";" and head.count("(") == head.count(")"):
            if of is not None:
                declare(head, None, of)
            head = ""
        else:
            head += character
        at += 1


def read_braces(head, inner, of, found):
    """Reads what is in braces after `head`. Returns what the declaration goes on with."""
    kind = layers.brace_kind([(character, 0) for character in head])
    match = CLASS_HEAD.match(head.strip())
    if kind == "value":
        return head + "{}"
    if kind != "scope":
        if of is not None:
            declare(head, inner, of)
        return ""
    if match and not re.match(r"\s*enum\b", head):
        outer = of.name + "::" if of is not None else ""
        inside = Class(outer + match.group(2), found["path"], "private" if match.group(1) == "class" else "public")
        found["classes"].append(inside)
        read_body(inner, inside, found)
    elif of is None and not re.match(r"\s*(enum|union|struct)\b", head):
        read_body(inner, None, found)
    return ""  # `struct A {...} a_;` goes on with a member, `struct A {...};` with none


def classes_of(path, text):
    found = {"path": path, "classes": []}
    read_body(layers.plain(text), None, found)
    return found["classes"]


def product(sources):
    return {path: text for path, text in sources.items()
            if path.startswith(PRODUCT) and not path.startswith(NOT_PRODUCT)}


def read_classes(sources):
    """Every class of the sources, with the .cc files that define its methods."""
    classes = []
    for path, text in sorted(sources.items()):
        classes += classes_of(path, text)
    by_name = {}
    for of in classes:
        by_name.setdefault(of.name, []).append(of)
    for path, text in sorted(sources.items()):
        if not path.endswith(".cc"):
            continue
        for name, _, _ in layers.functions(text):
            owner = "::".join(name.split("::")[:-1])
            for of in by_name.get(owner, []):
                if of.path.endswith(".h") or of.path == path:
                    of.files.add(path)
    return classes


def measure(sources):
    """[(kind, name, number, limit, as shown)], of every class and of all."""
    sources = product(sources)
    classes = read_classes(sources)
    found = []
    for of in classes:
        shown = "%d (%d public)" % (of.methods, of.public)
        if of.is_interface:
            found.append(("interface", of.name, of.called, INTERFACE_METHODS_MAX, str(of.called)))
            if of.called > of.pure:
                bodies = of.called - of.pure
                found.append(("not pure", of.name, bodies, 0, "%d of %d" % (bodies, of.called)))
        else:
            found.append(("methods", of.name, of.methods, METHODS_MAX, shown))
        if of.pure > 0 and not of.is_interface:
            found.append(("empty", of.name, of.empty, 0, str(of.empty)))
        if not of.is_record:
            found.append(("members", of.name, of.members, MEMBERS_MAX, str(of.members)))
        found.append(("files", of.name, len(of.files), FILES_MAX, str(len(of.files))))
    for names, limit in TOGETHER.items():
        methods = sum(of.methods for of in classes if of.name in names)
        found.append(("together", " and ".join(names), methods, limit, str(methods)))
    lines = sum(text.count("\n") for text in sources.values())
    found.append(("lines", "the product", lines, LINES_MAX, str(lines)))
    return found


def judge(found, known):
    """What is wrong, as lines."""
    wrong = []
    over = {}
    for kind, name, number, limit, _ in found:
        if number > limit:
            over[kind, name] = max(number, over.get((kind, name), 0))
            if (kind, name) not in known:
                wrong.append("%s: %s has %d, not at most %d" % (kind, name, number, limit))
    for (kind, name), number in sorted(known.items()):
        now = over.get((kind, name), 0)
        if now > number:
            wrong.append("%s: %s has %d, and KNOWN allows %d" % (kind, name, now, number))
        elif now == 0:
            wrong.append("%s: %s is within its limit: its entry in KNOWN goes" % (kind, name))
    return wrong


def table(found):
    lines = []
    for kind in sorted({kind for kind, _, _, _, _ in found}):
        largest = sorted((row for row in found if row[0] == kind), key=lambda row: (-row[2], row[1]))[:LARGEST]
        lines.append("%s, at most %d:" % (kind, largest[0][3]))
        lines += ["  %-40s %s" % (name, shown) for _, name, _, _, shown in largest]
    return lines


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    found = measure(layers.read_sources(os.path.dirname(os.path.realpath(arguments[0]))))
    wrong = judge(found, KNOWN)
    print("\n".join(table(found)))
    print("\n%d wrong" % len(wrong))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
