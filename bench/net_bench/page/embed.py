"""Prints a C++ source that defines texts with the content of files.

usage: embed.py NAME=FILE...
"""

import sys

PIECE = 8000  # of one literal: compilers need not take long ones


def literal(text):
    """The text as string literals that the compiler joins."""
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    return "\n    ".join('R"embedded(%s)embedded"' % piece for piece in pieces)


def main():
    print('#include "bench/net_bench/page/parts.h"\n\nnamespace tcpx {\nnamespace bench {\nnamespace page {\n')
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert ')embedded"' not in text, path
        print("extern const char %s[] =\n    %s;\n" % (name, literal(text)))
    print("}  // namespace page\n}  // namespace bench\n}  // namespace tcpx")


main()
