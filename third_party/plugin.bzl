"""tcpx_plugin_so: a shared object that needs libc only, from glibc 2.28 on, and exports what its version script lists."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//third_party:copts.bzl", "TCPX_COPTS")

# For what leaves this machine: libstdc++ and libgcc inside, and no symbol of a newer glibc (common/older_glibc.cc).
OLD_GLIBC_LINKOPTS = select({
    # A sanitizer's runtime lives in the executable, and it has to intercept what libstdc++ does.
    "//:sanitize": [],
    # -static-libstdc++ alone does nothing: Bazel links with gcc and appends -lstdc++. The archive named first and
    # --as-needed drop the shared one. Not for every target: asan wants it shared in executables.
    "//conditions:default": [
        "-static-libgcc",
        "-l:libstdc++.a",
        # Before glibc 2.34 threads and dlopen are there, and since then these are empty.
        "-Wl,--no-as-needed",
        "-l:libpthread.so.0",
        "-l:libdl.so.2",
        "-Wl,--as-needed",
        "-Wl,-z,defs",
    ],
})

OLD_GLIBC_DEPS = select({
    "//:sanitize": [],
    "//conditions:default": ["//common:older_glibc"],
})

def tcpx_plugin_so(name, srcs, map, deps = [], **kwargs):
    """Links a shared object with libstdc++ and libgcc inside, and with symbols of old glibc versions only.

    Args:
      name: file name of the shared object, with the .so ending.
      srcs: sources of its entry points.
      map: label of the linker's version script.
      deps: libraries linked in.
      **kwargs: passed to cc_binary.
    """
    cc_binary(
        name = name,
        srcs = srcs,
        additional_linker_inputs = [map],
        copts = TCPX_COPTS,
        local_defines = select({
            "//:sanitize": [],
            "//conditions:default": ["TCPX_OWN_LIBSTDCXX"],
        }),
        linkopts = [
            "-Wl,--version-script=$(location %s)" % map,
            "-Wl,--build-id=sha1",
            "-pthread",
        ] + OLD_GLIBC_LINKOPTS,
        linkshared = True,
        deps = deps + ["@local_cuda//:cuda_headers"] + OLD_GLIBC_DEPS,
        **kwargs
    )
