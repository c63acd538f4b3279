#!/usr/bin/env python3
"""What a process may not do under the profile: it says so of each, or that it could.

usage: refused.py

Namespaces, mounts and what else a container could be left by, and sockets of the kernel's ciphers and to the host of a
virtual machine. Run by under_seccomp.py. Exit code: 1 if anything was allowed, or an ordinary fork or socket was not.
"""

import ctypes
import os
import platform
import sys

ENOSYS = 38
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, SIGCHLD = 0x20000, 0x10000000, 0x40000000, 17
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
AF_UNIX, AF_INET, AF_NETLINK, AF_INET6, AF_ALG, AF_VSOCK, STREAM = 1, 2, 16, 10, 38, 40, 1

libc = ctypes.CDLL(None, use_errno=True)


def child():
    """An ordinary one."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def sockets():
    """Those that the plugin has."""
    kinds = ((AF_UNIX, STREAM), (AF_INET, STREAM), (AF_INET6, STREAM), (AF_NETLINK, 3))
    return all(libc.socket(family, kind, 0) >= 0 for family, kind in kinds)


def family(number):
    """A socket of it, as a call with all bits of the number."""
    return libc.syscall(SOCKET, ctypes.c_ulong(number), ctypes.c_ulong(STREAM), ctypes.c_ulong(0))


def main():
    wrong = 0 if child() and sockets() else 1
    for name, call in (
            ("unshare(CLONE_NEWUSER)", lambda: libc.unshare(CLONE_NEWUSER)),
            ("unshare(CLONE_NEWNS)", lambda: libc.unshare(CLONE_NEWNS)),
            ("unshare(CLONE_NEWNET)", lambda: libc.unshare(CLONE_NEWNET)),
            ("clone(CLONE_NEWUSER)", lambda: libc.syscall(CLONE, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)),
            ("mount", lambda: libc.mount(b"none", b"/nowhere", b"tmpfs", 0, None)),
            ("umount2", lambda: libc.umount2(b"/nowhere", 0)),
            ("socket(AF_ALG)", lambda: family(AF_ALG)),
            ("socket(AF_VSOCK)", lambda: family(AF_VSOCK)),
            ("socket(AF_ALG), with bits that the kernel does not look at", lambda: family(1 << 32 | AF_ALG)),
            ("setns", lambda: libc.setns(-1, 0)),
            ("pivot_root", lambda: libc.syscall({"x86_64": 155, "aarch64": 41}[platform.machine()], b"/", b"/")),
            ("bpf", lambda: libc.syscall({"x86_64": 321, "aarch64": 280}[platform.machine()], 0, 0, 0))):
        ctypes.set_errno(0)
        result = call()
        if result == 0 and name.startswith("clone"):
            os._exit(0)  # The child of the clone that should not have been.
        refused = result == -1 and ctypes.get_errno() == ENOSYS
        print("%s: %s" % (name, "refused" if refused else "ALLOWED"))
        wrong += not refused
    sys.exit(1 if wrong else 0)


main()
