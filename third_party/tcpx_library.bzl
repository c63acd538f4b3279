"""tcpx_library: a cc_library of this project, of one header and its source unless it says otherwise."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//third_party:copts.bzl", "TCPX_COPTS")

def tcpx_library(name, hdrs = None, srcs = None, **kwargs):
    """Declares a library with this project's compiler options.

    Args:
      name: name of the target.
      hdrs: headers; by default name.h.
      srcs: sources; by default name.cc, where there is one.
      **kwargs: passed to cc_library.
    """
    cc_library(
        name = name,
        srcs = srcs if srcs != None else native.glob([name + ".cc"]),
        hdrs = hdrs if hdrs != None else [name + ".h"],
        copts = TCPX_COPTS,
        # Only the plugin itself is a shared object.
        linkstatic = True,
        **kwargs
    )
