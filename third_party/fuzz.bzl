"""cc_fuzz_test: one target that replays its corpus as a test and, under --config=fuzz, is a libFuzzer binary."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//third_party:copts.bzl", "TCPX_COPTS")

def cc_fuzz_test(name, srcs, corpus, deps = [], **kwargs):
    """Declares a fuzz target whose source defines LLVMFuzzerTestOneInput.

    Args:
      name: name of the target.
      srcs: sources.
      corpus: input files, replayed by the plain test.
      deps: libraries under test.
      **kwargs: passed to cc_test.
    """
    cc_test(
        name = name,
        srcs = srcs,
        args = ["$(location %s)" % f for f in corpus],
        copts = TCPX_COPTS,
        data = corpus,
        linkopts = select({
            "//:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps + select({
            "//:fuzzing": [],
            "//conditions:default": ["//tests/fuzz:replay_main"],
        }),
        **kwargs
    )
