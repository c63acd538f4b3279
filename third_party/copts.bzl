"""Compiler options of our own targets. Warnings are errors here; external code is built with -w (.bazelrc)."""

TCPX_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    # Abseil's headers reach us by -iquote, so its warnings would be ours; these two are noise there and here.
    "-Wno-sign-compare",
    "-Wno-missing-field-initializers",
    # Symbols bind inside the .so. What NCCL looks up carries visibility("default") and is in plugin.map.
    "-fvisibility=hidden",
]
