"""tcpx_library: a cc_library of this project; tcpx_room: that of a whole folder."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//third_party:copts.bzl", "TCPX_COPTS")
load("//third_party:precompiled.bzl", "precompiled_copts", "precompiled_deps")
load("//third_party:unity.bzl", "unity_source")

# What most sources include.
_PRECOMPILED_COPTS = precompiled_copts("common/precompiled.h")
_PRECOMPILED_DEPS = precompiled_deps("//common:precompiled")

def tcpx_library(name, hdrs = None, srcs = None, unity = True, deps = [], **kwargs):
    """Declares a library of one header and its source, unless it says otherwise.

    Args:
      name: name of the target.
      hdrs: headers; by default name.h.
      srcs: sources; by default name.cc, where there is one.
      unity: whether they are compiled as one (unity.bzl). A linker that is to put something in the place of a function
        (--wrap) sees no call in the file in which it is.
      deps: libraries that it uses.
      **kwargs: passed to cc_library.
    """
    sources = srcs if srcs != None else native.glob([name + ".cc"])
    cc_library(
        name = name,
        srcs = unity_source(name, sources) if unity else sources,
        hdrs = hdrs if hdrs != None else [name + ".h"],
        copts = TCPX_COPTS + _PRECOMPILED_COPTS,
        deps = deps + _PRECOMPILED_DEPS,
        # Only the plugin itself is a shared object.
        linkstatic = True,
        **kwargs
    )

def tcpx_room(name, exclude = [], **kwargs):
    """Declares the library of a folder of the product: all its classes.

    Args:
      name: name of the target: the folder's.
      exclude: sources that are no part of it.
      **kwargs: passed to tcpx_library.
    """
    tcpx_library(
        name = name,
        hdrs = native.glob(["*.h"]),
        srcs = native.glob(["*.cc"], exclude = exclude),
        **kwargs
    )
