#!/usr/bin/env python3
"""What a process may not do under the profile: it says so of each, or that it could.

usage: refused.py

Namespaces, mounts and what else a container could be left by. Run by under_seccomp.py. Exit code: 1 if anything was
allowed, or an ordinary fork was not.
"""

import ctypes
import os
import platform
import sys

ENOSYS = 38
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, SIGCHLD = 0x20000, 0x10000000, 0x40000000, 17
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]

libc = ctypes.CDLL(None, use_errno=True)


def child():
    """An ordinary one."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def main():
    wrong = 0 if child() else 1
    for name, call in (
            ("unshare(CLONE_NEWUSER)", lambda: libc.unshare(CLONE_NEWUSER)),
            ("unshare(CLONE_NEWNS)", lambda: libc.unshare(CLONE_NEWNS)),
            ("unshare(CLONE_NEWNET)", lambda: libc.unshare(CLONE_NEWNET)),
            ("clone(CLONE_NEWUSER)", lambda: libc.syscall(CLONE, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)),
            ("mount", lambda: libc.mount(b"none", b"/nowhere", b"tmpfs", 0, None)),
            ("umount2", lambda: libc.umount2(b"/nowhere", 0)),
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
