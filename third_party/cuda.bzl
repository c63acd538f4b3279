"""@local_cuda: the CUDA headers of this machine, or the same targets without them.

The toolkit is looked for in $CUDA_HOME, else in /usr/local/cuda. `@local_cuda//:found.bzl` says CUDA_FOUND; who depends
on `@local_cuda//:cuda_headers` sees TCPX_HAVE_CUDA as 1 or 0. The driver itself is opened at run time, never linked.
"""

_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cuda_headers",
    hdrs = glob(
        ["include/*.h", "include/*.hpp", "include/crt/**", "include/nv/**"],
        allow_empty = True,
    ),
    defines = ["TCPX_HAVE_CUDA={have}"],
    includes = ["include"],
)
"""

def _impl(rctx):
    home = rctx.os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    include = rctx.path(home + "/include")
    found = rctx.path(home + "/include/cuda.h").exists
    if found:
        rctx.symlink(include, "include")
        print("CUDA headers in %s: the GPU parts are built" % include)  # buildifier: disable=print
    else:
        rctx.file("include/.keep")
        print("no CUDA headers in %s: building without the GPU parts" % include)  # buildifier: disable=print
    rctx.file("BUILD.bazel", _BUILD.format(have = "1" if found else "0"))
    rctx.file("found.bzl", "CUDA_FOUND = %s\n" % found)

cuda_repository = repository_rule(
    implementation = _impl,
    environ = ["CUDA_HOME"],
    local = True,
)
