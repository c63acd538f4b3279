"""@local_nccl: NCCL and the CUDA runtime of this machine, to link against; or nothing, where one of them is missing.

NCCL is looked for in $NCCL_HOME, the toolkit's folder ($CUDA_HOME, else /usr/local/cuda), /usr/local and /usr; the
runtime in the toolkit's folder. `@local_nccl//:found.bzl` says NCCL_FOUND. The static runtime is preferred: what links
it needs only libnccl.so.2 and the driver on the machine where it runs. The plugin itself links none of this.
"""

_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "nccl",
    hdrs = glob(["include/*.h"], allow_empty = True),
    includes = ["include"],
    linkopts = {linkopts},
    deps = ["@local_cuda//:cuda_headers"],
)
"""

_LIBRARY_FOLDERS = [
    "lib",
    "lib64",
    "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
]

def _library(rctx, home, names):
    """Returns (folder, file name) of the first of `names` below `home`, or None."""
    for name in names:
        for folder in _LIBRARY_FOLDERS:
            if rctx.path("%s/%s/%s" % (home, folder, name)).exists:
                return ("%s/%s" % (home, folder), name)
    return None

def _find_nccl(rctx, cuda):
    """Returns (home, library) of NCCL, or None."""
    named = rctx.os.environ.get("NCCL_HOME")
    for home in [named] if named else [cuda, "/usr/local", "/usr"]:
        library = _library(rctx, home, ["libnccl.so.2", "libnccl.so"])
        if library and rctx.path(home + "/include/nccl.h").exists:
            return (home, library)
    return None

def _linkopts(nccl, runtime):
    options = ["-L" + nccl[0], "-l:" + nccl[1], "-Wl,-rpath," + nccl[0], "-L" + runtime[0], "-l:" + runtime[1]]
    if not runtime[1].endswith(".a"):
        options.append("-Wl,-rpath," + runtime[0])
    return options + ["-ldl", "-lrt", "-pthread"]

def _impl(rctx):
    cuda = rctx.os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    headers = rctx.path(cuda + "/include/cuda_runtime_api.h").exists
    runtime = _library(rctx, cuda, ["libcudart_static.a", "libcudart.so"]) if headers else None
    nccl = _find_nccl(rctx, cuda) if runtime else None
    linkopts = []
    if nccl:
        # nccl.h names nccl_device.h and nothing else of NCCL's.
        for header in ["nccl.h", "nccl_device.h"]:
            if rctx.path("%s/include/%s" % (nccl[0], header)).exists:
                rctx.symlink("%s/include/%s" % (nccl[0], header), "include/" + header)
        linkopts = _linkopts(nccl[1], runtime)
        print("NCCL in %s: nccl_bench is built" % nccl[0])  # buildifier: disable=print
    else:
        what = "NCCL" if runtime else "CUDA runtime"
        print("no %s found: building without nccl_bench" % what)  # buildifier: disable=print
    rctx.file("BUILD.bazel", _BUILD.format(linkopts = repr(linkopts)))
    rctx.file("found.bzl", "NCCL_FOUND = %s\n" % bool(nccl))

nccl_repository = repository_rule(
    implementation = _impl,
    environ = [
        "CUDA_HOME",
        "NCCL_HOME",
    ],
    local = True,
)
