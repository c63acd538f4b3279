"""Makes NCCL in this process use the network plugin libnccl-net-tcpx, which lies inside this package.

    import tcpx
    tcpx.enable()  # before torch is imported
    import torch

`python -m tcpx --shell` prints the same settings for a shell. Only the environment of this process, and of the
processes that it starts later, is changed.
"""

import os
import re
from typing import Dict, Optional

__all__ = ["__version__", "enable", "exports"]
__version__ = "@VERSION@"

_LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
# NCCL 2.26 and later cut a longer path off, and from 2.27 on a comma ends a path.
_LONGEST_PATH = 254
# Or RCCL, its counterpart for AMD GPUs.
_MAPPED_NCCL = re.compile(r"(/(?:.*/)?lib[nr]ccl\.so(?:\.\d+)*)(?: \(deleted\))?")


def _library(name: str) -> str:
    """The path of one of the libraries, as NCCL can take it."""
    path = os.path.join(_LIB, name)
    if not os.path.isfile(path):
        raise RuntimeError("%s is missing: install the wheel nccl-net-tcpx" % path)
    if "," in path or len(os.fsencode(path)) > _LONGEST_PATH:
        raise RuntimeError(
            "NCCL can't load %s: its path has a comma or is longer than %d bytes. Install the wheel nccl-net-tcpx in "
            "another folder" % (path, _LONGEST_PATH)
        )
    return path


def exports(profiler: bool = False) -> Dict[str, str]:
    """Returns the environment variables that make NCCL use the plugin, and with `profiler` the profiler as well.

    NCCL_NET makes NCCL stop with an error, instead of silently using its own sockets, if it can't load the plugin.
    """
    variables = {"NCCL_NET_PLUGIN": _library("libnccl-net-tcpx.so"), "NCCL_NET": "tcpx"}
    if profiler:
        variables["NCCL_PROFILER_PLUGIN"] = _library("libnccl-profiler-tcpx.so")
    return variables


def _means_the_same(name: str, value: str, wanted: str) -> bool:
    """Would NCCL do the same with both values?"""
    if name == "NCCL_NET":
        return value.lower() == wanted.lower()
    return value == wanted or os.path.isabs(value) and os.path.realpath(value) == os.path.realpath(wanted)


def _loaded_nccl() -> Optional[str]:
    """The path of the NCCL that this process has loaded; None if there is none."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(None, 5)
            found = _MAPPED_NCCL.fullmatch(fields[5]) if len(fields) == 6 else None
            if found:
                return found.group(1)
    return None


def enable(profiler: bool = False) -> None:
    """Sets the variables of `exports` in os.environ. Those that are set to the same already are left as they are.

    Raises RuntimeError, and sets nothing, if one is set to something else, or if NCCL is loaded already and might
    have read the old values. Call it before torch, or whatever else brings NCCL, is imported.
    """
    missing = {}
    for name, wanted in exports(profiler).items():
        value = os.environ.get(name, "")
        if not value:
            missing[name] = wanted
        elif not _means_the_same(name, value, wanted):
            raise RuntimeError(
                "%s is set to %r, so NCCL would not use this package: unset it, or set it to %r" % (name, value, wanted)
            )
    nccl = _loaded_nccl() if missing else None
    if nccl:
        raise RuntimeError(
            "NCCL is loaded already (%s): call tcpx.enable() before torch, or anything else that loads NCCL, is "
            'imported; or run  eval "$(python -m tcpx --shell)"  in the shell that starts this process' % nccl
        )
    os.environ.update(missing)
