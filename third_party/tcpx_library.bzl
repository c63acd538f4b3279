"""tcpx_library: a cc_library of this project, of one header and its source unless it says otherwise."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//third_party:copts.bzl", "TCPX_COPTS")
load("//third_party:precompiled.bzl", "precompiled_copts", "precompiled_deps")

# What most sources include.
_PRECOMPILED_COPTS = precompiled_copts("common/precompiled.h")
_PRECOMPILED_DEPS = precompiled_deps("//common:precompiled")

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
