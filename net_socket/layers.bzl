"""The folders of net_socket, and who may see whom."""

# Top to bottom: a folder is visible to the folders above it, to itself, to tests, to the doctor, to bench/fabric
# and to bench/gpu_probe, so that a climb does not build.
_LAYERS = [
    "plugin",
    "rma",
    "connect",
    "comm",
    "receive",
    "send",
    "pilot",
    "nic",
    "gpu",
    "stats",
    "health",
    "engine",
    "message",
    "seal",
]

def tcpx_layer(folder):
    """The visibility of a folder's libraries.

    Args:
      folder: its name.

    Returns:
      labels for package(default_visibility).
    """
    above = _LAYERS[:_LAYERS.index(folder)]
    return ["//net_socket/%s:__pkg__" % layer for layer in above] + [
        "//net_socket:__pkg__",
        "//bench/fabric:__pkg__",
        "//bench/gpu_probe:__pkg__",
        "//tests:__subpackages__",
        "//tools/doctor:__pkg__",
    ]
