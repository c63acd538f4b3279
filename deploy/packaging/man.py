"""Manual pages, made from the text that a command prints for --help, which is in its source.

Purpose: the raw string of a C++ source, the docstring of a Python script, or the comment at the start of a shell
         script, after its first line. "usage:" becomes SYNOPSIS, "exit code:" EXIT
         STATUS, a line above an indented block its heading; what is indented stays as it is.
Errors:  ValueError where a source has no such text.
"""

import ast
import gzip
import re


def help_text(source, data):
    """Returns the text of --help."""
    text = data.decode()
    if source.endswith(".cc"):
        found = re.search(r'R"\((.*?)\)"', text, re.S)
        if not found:
            raise ValueError("no raw string in " + source)
        return found.group(1).strip("\n")
    if text.startswith("#!/bin/sh\n"):
        return re.match(r"#!.*\n((?:#.*\n)+)", text).group(1).replace("# ", "").replace("#", "").strip("\n")
    text = ast.get_docstring(ast.parse(text))
    if not text:
        raise ValueError("no docstring in " + source)
    return text


def escaped(line):
    """A line as troff takes it for text."""
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in (".", "'") else line


def literal(lines):
    """Lines that keep their form, at the margin: they are up to 80 columns wide already."""
    return [".nf", ".in 0"] + [escaped(line) for line in lines] + [".in", ".fi"]


def paragraph(lines):
    """One paragraph below the heading that it needs."""
    if lines[0].startswith("usage:"):
        first = lines[0][len("usage:") :]
        # The text after "usage: " begins where a section's text does.
        rest = [line[7:] if line.startswith(" " * 7) else line.strip() for line in lines[1:]]
        return ["SYNOPSIS"], [".nf", *map(escaped, [first.strip(), *rest]), ".fi"]
    if re.match(r"exit codes?:", lines[0]):
        return ["EXIT STATUS"], [escaped(re.sub(r"^exit codes?: *", "", " ".join(lines)))]
    if len(lines) > 1 and not lines[0].startswith(" ") and lines[1].startswith("  "):
        return ["DESCRIPTION", lines[0].rstrip(":")], literal(lines[1:])
    if lines[0].startswith(" "):
        return ["DESCRIPTION"], [".PP"] + literal(lines)
    return ["DESCRIPTION"], [".PP"] + [escaped(line) for line in lines]


def summary(name, blocks):
    """Takes what the command is, in a few words, off the first paragraph that says so."""
    for block in blocks:
        if block[0].startswith("usage:"):
            continue
        if block[0].startswith(name + ": "):
            return block.pop(0)[len(name) + 2 :]
        text = re.match(r".*?\.(?=\s|$)", " ".join(block)).group(0).rstrip(".")
        return text[0].lower() + text[1:]
    raise ValueError("nothing says what %s is" % name)


def page(name, section_number, source, data):
    """Returns the compressed page of a command, the same for the same source."""
    text = help_text(source, data).replace("tools/" + source.rpartition("/")[2], name)
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text)]
    out = ['.TH "%s" %s "" "libnccl\\-net\\-tcpx"' % (name.upper(), section_number), ".SH NAME"]
    out.append(escaped("%s - %s" % (name, summary(name, blocks))))
    sections = {"SYNOPSIS": [], "DESCRIPTION": [], "EXIT STATUS": []}
    for block in filter(None, blocks):
        (section, *heading), lines = paragraph(block)
        sections[section] += ['.SS "%s"' % escaped(heading[0]).replace('"', '\\(dq')] if heading else []
        sections[section] += lines
    for section, lines in sections.items():
        out += [".SH " + section] + lines if lines else []
    out += [".SH SEE ALSO", "The package's folder of documents; README.md there leads to all pages.", ""]
    return gzip.compress("\n".join(out).encode(), mtime=0)


def parameter(block, row):
    """The lines of one parameter: its name, what it does, its default, what is allowed, and the whole text."""
    name, _, text = block.partition("\n")
    does, default, allowed = row
    out = [".TP", ".B " + escaped(name), escaped("%s. Default: %s. Allowed: %s." % (does, default, allowed)), ".br"]
    return out + [escaped(line) for line in plain(text).splitlines() if line]


def plain(markdown):
    """Markdown as text: no back ticks, and links by their words."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown.replace("`", ""))


def parameters_page(markdown):
    """Returns the compressed page tcpx(7), made from docs/parameters.md."""
    introduction, *groups = re.split(r"^## ", markdown, flags=re.M)
    out = ['.TH "TCPX" 7 "" "libnccl\\-net\\-tcpx"', ".SH NAME"]
    out += [escaped("tcpx - parameters of the NCCL network plugin libnccl-net-tcpx"), ".SH DESCRIPTION"]
    for line in plain(introduction.partition("\n")[2].partition("This page is generated")[0]).strip().splitlines():
        bullet = line.startswith("- ")
        out += [".IP \\(bu 2"] if bullet else [".PP"] if not line else []
        out += [escaped(line.strip("- "))] if line else []
    for group in groups:
        heading, *parameters = re.split(r"^### ", group, flags=re.M)
        title, _, rest = heading.partition("\n")
        cells = re.findall(r"^\| \[(\w+)\]\(\S+\) \| (.*) \| (.*) \| (.*) \|$", rest, re.M)
        rows = {name: [plain(cell) for cell in row] for name, *row in cells}
        out += [".SH " + escaped(title.upper()), escaped(plain(rest.strip().partition("\n\n")[0].replace("\n", " ")))]
        for block in parameters:
            out += parameter(block, rows[block.partition("\n")[0]])
    out += [".SH FILES", escaped("/etc/nccl.conf, ~/.nccl.conf: lines NAME=VALUE"), ".SH SEE ALSO"]
    out += [escaped("tcpx_doctor(1), tcpx_top(1), net_bench(1), rma_bench(1)"), ""]
    return gzip.compress("\n".join(out).encode(), mtime=0)
