"""tcpx_library: a cc_library of this project, of one header and its source unless it says otherwise."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//third_party:copts.bzl", "TCPX_COPTS")

# For gcc's sanitizers; clang, which compiles what a fuzzer drives, does without.
_PRECOMPILED_COPTS = select({
    "//:fuzzing": [],
    "//:sanitize": [
        "-include",
        "common/precompiled.h",
        "-Winvalid-pch",
    ],
    "//conditions:default": [],
})
_PRECOMPILED_DEPS = select({
    "//:fuzzing": [],
    "//:sanitize": ["//common:precompiled"],
    "//conditions:default": [],
})

def tcpx_library(name, hdrs = None, srcs = None, deps = [], **kwargs):
    """Declares a library with this project's compiler options.

    Args:
      name: name of the target.
      hdrs: headers; by default name.h.
      srcs: sources; by default name.cc, where there is one.
      deps: libraries that it uses.
      **kwargs: passed to cc_library.
    """
    cc_library(
        name = name,
        srcs = srcs if srcs != None else native.glob([name + ".cc"]),
        hdrs = hdrs if hdrs != None else [name + ".h"],
        copts = TCPX_COPTS + _PRECOMPILED_COPTS,
        deps = deps + _PRECOMPILED_DEPS,
        # Only the plugin itself is a shared object.
        linkstatic = True,
        **kwargs
    )
