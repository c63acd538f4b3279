"""tcpx_test and what tests are built with: the compiler options of test code are in one place."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//third_party:copts.bzl", "TCPX_COPTS")
load("//third_party:precompiled.bzl", "precompiled_copts", "precompiled_deps")
load("//third_party:unity.bzl", "unity_source")

# Undefined behaviour is looked for in what is tested: it doubles the time that a test takes to compile.
_SANITIZED_COPTS = select({
    "//:sanitize": ["-fno-sanitize=undefined"],
    "//conditions:default": [],
})

# Test code is compiled without optimization in every configuration: the tests are most of what is compiled, and no
# defect is looked for in them. What is tested is compiled as .bazelrc says.
TCPX_TEST_COPTS = TCPX_COPTS + [
    "-O0",
    # It needs optimization.
    "-U_FORTIFY_SOURCE",
] + _SANITIZED_COPTS

# That of a test that computes. Some sanitizers' configurations do not optimize.
TCPX_COMPUTES_COPTS = TCPX_COPTS + select({
    "//:sanitize": ["-O1", "-fno-sanitize=undefined"],
    "//conditions:default": [],
})

# Most of the time goes into headers that all tests have in common.
def _copts(computes):
    if computes:
        return TCPX_COMPUTES_COPTS + precompiled_copts("tests/support/precompiled_computes.h")
    return TCPX_TEST_COPTS + precompiled_copts("tests/support/precompiled.h")

def _deps(computes):
    return precompiled_deps("//tests/support:precompiled_computes" if computes else "//tests/support:precompiled")

def tcpx_test(
        name,
        srcs = None,
        deps = [],
        linkopts = [],
        own_network = False,
        computes = False,
        pure = False,
        apart = True,
        tags = [],
        **kwargs):
    """Declares a GoogleTest program.

    Args:
      name: name of the target.
      srcs: sources; by default name.cc.
      deps: libraries under test and helpers; GoogleTest and a main (tests/support/test_main.cc) are added.
      linkopts: options of the linker; threads are added.
      own_network: whether the program runs in a network namespace of its own.
      computes: whether it computes more than it waits; it is optimized then.
      pure: whether all it tests has one thread and no loop; the thread sanitizer is not asked then.
      apart: as for unity_source, which compiles its sources as one.
      tags: tags of the target.
      **kwargs: passed to cc_test.
    """
    cc_test(
        name = name,
        srcs = unity_source(name, srcs if srcs != None else [name + ".cc"], apart = apart, testonly = True),
        copts = _copts(computes),
        linkopts = ["-pthread"] + linkopts,
        tags = tags + (["no-tsan"] if pure else []),
        deps = deps + [
            "//tests/support:test_main_in_own_network" if own_network else "//tests/support:test_main",
            "@com_google_googletest//:gtest",
        ] + _deps(computes),
        **kwargs
    )

def tcpx_test_library(name, srcs = None, hdrs = None, deps = [], testonly = True, computes = False, **kwargs):
    """Declares what several tests share, of one header and its source unless it says otherwise.

    Args:
      name: name of the target.
      srcs: sources; by default name.cc, where there is one.
      hdrs: headers; by default name.h.
      deps: libraries that it uses.
      testonly: False only for what the product's own programs share with tests.
      computes: as for tcpx_test.
      **kwargs: passed to cc_library.
    """
    cc_library(
        name = name,
        testonly = testonly,
        srcs = srcs if srcs != None else native.glob([name + ".cc"]),
        hdrs = hdrs if hdrs != None else [name + ".h"],
        copts = _copts(computes),
        deps = deps + _deps(computes),
        **kwargs
    )

def tcpx_test_program(name, srcs = None, deps = [], computes = False, **kwargs):
    """Declares a program or a shared object that a test starts or loads.

    Args:
      name: name of the target.
      srcs: sources; by default name.cc.
      deps: libraries that it uses.
      computes: as for tcpx_test.
      **kwargs: passed to cc_binary.
    """
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs if srcs != None else [name + ".cc"],
        copts = _copts(computes),
        deps = deps + _deps(computes),
        **kwargs
    )
