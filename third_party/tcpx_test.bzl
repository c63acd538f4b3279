"""tcpx_test and what tests are built with: the compiler options of test code are in one place."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//third_party:copts.bzl", "TCPX_COPTS")

# Test code is compiled without optimization in every configuration: it is what takes longest to compile (docs in
# tests/README.md), and no defect is looked for in it. What is tested is compiled as .bazelrc says.
TCPX_TEST_COPTS = TCPX_COPTS + [
    "-O0",
    # It needs optimization.
    "-U_FORTIFY_SOURCE",
]

def tcpx_test(name, srcs = None, deps = [], linkopts = [], own_network = False, **kwargs):
    """Declares a GoogleTest program.

    Args:
      name: name of the target.
      srcs: sources; by default name.cc.
      deps: libraries under test and helpers; GoogleTest and a main (tests/support/test_main.cc) are added.
      linkopts: options of the linker; threads are added.
      own_network: whether the program runs in a network namespace of its own.
      **kwargs: passed to cc_test.
    """
    cc_test(
        name = name,
        srcs = srcs if srcs != None else [name + ".cc"],
        copts = TCPX_TEST_COPTS,
        linkopts = ["-pthread"] + linkopts,
        deps = deps + [
            "//tests/support:test_main_in_own_network" if own_network else "//tests/support:test_main",
            "@com_google_googletest//:gtest",
        ],
        **kwargs
    )

def tcpx_test_library(name, srcs = None, hdrs = None, testonly = True, **kwargs):
    """Declares what several tests share, of one header and its source unless it says otherwise.

    Args:
      name: name of the target.
      srcs: sources; by default name.cc, where there is one.
      hdrs: headers; by default name.h.
      testonly: False only for what the product's own programs share with tests.
      **kwargs: passed to cc_library.
    """
    cc_library(
        name = name,
        testonly = testonly,
        srcs = srcs if srcs != None else native.glob([name + ".cc"]),
        hdrs = hdrs if hdrs != None else [name + ".h"],
        copts = TCPX_TEST_COPTS,
        **kwargs
    )

def tcpx_test_program(name, srcs = None, **kwargs):
    """Declares a program or a shared object that a test starts or loads.

    Args:
      name: name of the target.
      srcs: sources; by default name.cc.
      **kwargs: passed to cc_binary.
    """
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs if srcs != None else [name + ".cc"],
        copts = TCPX_TEST_COPTS,
        **kwargs
    )
