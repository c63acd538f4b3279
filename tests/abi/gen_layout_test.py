"""Writes layout_test.cc: every number of the golden layout as one expectation about our headers.

Usage: gen_layout_test.py nccl-net-layout.json nccl-profiler-layout.json nccl-rma-layout.json > layout_test.cc
"""

import json
import sys

HEAD = """// Written by gen_layout_test.py from the golden layout.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gtest/gtest.h"
#include "nccl/net_tables.h"
#include "nccl/profiler_tables.h"
#include "nccl/rma_shims.h"
#include "nccl/shims.h"

// Tables with bases: gcc and clang know their offsets.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
"""


def test(name, lines):
    """One test; its expectations are `lines`."""
    assert lines, name
    return "\nTEST(NetLayout, %s) {\n%s}\n" % (name, "".join("  %s\n" % line for line in lines))


def same_type(ours, golden):
    return 'EXPECT_TRUE((std::is_same_v<%s, %s>)) << "%s";' % (ours, golden, ours)


def struct_lines(struct):
    """Size, alignment, and of every member offset, size and type."""
    name = struct["type"]
    lines = [
        "EXPECT_EQ(sizeof(%s), %du);" % (name, struct["sizeof"]),
        "EXPECT_EQ(alignof(%s), %du);" % (name, struct["alignof"]),
    ]
    for field in struct["fields"]:
        member = "static_cast<%s*>(nullptr)->%s" % (name, field["name"])
        lines.append("EXPECT_EQ(offsetof(%s, %s), %du);" % (name, field["name"], field["offset"]))
        lines.append("EXPECT_EQ(sizeof(%s), %du);" % (member, field["size"]))
        if "type" in field:
            lines.append(same_type("decltype(%s)" % member, field["type"]))
    return lines


def version_tests(versions):
    for version, net in versions.items():
        for struct in net["structs"]:
            yield test("%s_%s" % (version, struct["type"]), struct_lines(struct))
        if net["aliases"]:
            yield test(version + "_Aliases", [same_type(a, t) for a, t in net["aliases"].items()])


def value_lines(values):
    return ["EXPECT_EQ(static_cast<int64_t>(%s), int64_t{%d});" % item for item in values.items()]


def symbol_lines(golden):
    """Each release looks for its native version first; we export that one, as an object of the right type."""
    lines = []
    for release in golden["release_lookup"]:
        version = max(release["versions"])
        symbol = golden["net"]["v%d" % version]["symbol"]
        lines.append(same_type("decltype(%s)" % symbol, "const ncclNet_v%d_t" % version))
        lines.append('EXPECT_STREQ(%s.name, "tcpx") << "NCCL %s to %s";' % (symbol, release["from"], release["to"]))
    return lines


def rma_lines(golden):
    lines = []
    for release in golden["release_lookup"]:
        symbol = golden["rma"]["v%d" % release["version"]]["symbol"]
        lines.append(same_type("decltype(%s)" % symbol, "const ncclRma_v%d_t" % release["version"]))
        lines.append('EXPECT_STREQ(%s.name, "tcpx") << "NCCL %s";' % (symbol, release["from"]))
    return lines


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        golden = json.load(file)
    print(HEAD, end="")
    for text in version_tests(golden["net"]):
        print(text, end="")
    for struct in golden["profiler_net_descr"]:
        print(test(struct["type"], struct_lines(struct)), end="")
    for name, values in golden["enums"].items():
        print(test("Enum_" + name, value_lines(values)), end="")
    print(test("Constants", value_lines(golden["constants"])), end="")
    sizes = ["EXPECT_EQ(sizeof(%s), %du);" % item for item in golden["scalar_types"].items()]
    functions = [same_type(n, t) for n, t in golden["function_pointer_types"].items()]
    print(test("ScalarTypes", sizes + functions), end="")
    print(test("EveryReleaseFindsItsNativeTable", symbol_lines(golden)), end="")
    with open(sys.argv[2], encoding="utf-8") as file:
        profiler = json.load(file)
    for struct in profiler["structs"]:
        print(test(struct["type"], struct_lines(struct)), end="")
    for name, values in profiler["enums"].items():
        print(test("Enum_" + name, value_lines(values)), end="")
    with open(sys.argv[3], encoding="utf-8") as file:
        rma = json.load(file)
    for text in version_tests(rma["rma"]):
        print(text, end="")
    print(test("RmaConstants", value_lines(rma["constants"])), end="")
    print(test("EveryReleaseFindsItsRmaTable", rma_lines(rma)), end="")


main()
