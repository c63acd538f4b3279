"""tcpx_program: a program that users get, which like the plugin needs libc only, from glibc 2.28 on."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//third_party:copts.bzl", "TCPX_COPTS")
load("//third_party:plugin.bzl", "OLD_GLIBC_DEPS", "OLD_GLIBC_LINKOPTS")

def tcpx_program(name, deps = [], **kwargs):
    """Links a program with libstdc++ and libgcc inside, and with symbols of old glibc versions only.

    Args:
      name: name of the program.
      deps: libraries linked in.
      **kwargs: passed to cc_binary.
    """
    cc_binary(
        name = name,
        copts = TCPX_COPTS,
        linkopts = [
            "-pthread",
            "-Wl,--build-id=sha1",
        ] + OLD_GLIBC_LINKOPTS,
        deps = deps + OLD_GLIBC_DEPS + select({
            "//:sanitize": [],
            "//conditions:default": ["//common:older_start"],
        }),
        **kwargs
    )
