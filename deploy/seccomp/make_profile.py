#!/usr/bin/env python3
"""Makes a seccomp profile that allows io_uring, and else what a container runtime allows by itself.

usage: make_profile.py RUNTIME_DEFAULT.json > tcpx-io-uring.json

RUNTIME_DEFAULT.json is the profile of the node's runtime, in Docker's form with conditions (CRI-O and Podman have it in
/usr/share/containers/seccomp.json). The conditions are resolved for an ordinary pod, on amd64 and arm64, because
containerd and CRI-O take the result as it is.

exit codes: 0 done; 1 the file can't be read; 2 wrong use
"""

import json
import sys

IO_URING = ["io_uring_enter", "io_uring_register", "io_uring_setup"]
ARCHES = {"amd64", "x86", "x32", "arm64", "arm"}
# What a pod's process has when nothing is added or dropped, as far as profiles ask for it.
CAPABILITIES = {"CAP_AUDIT_WRITE", "CAP_SYS_CHROOT"}
ARCHITECTURES = ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"]


def applies(rule):
    """Does a rule hold for an ordinary pod on one of our processors?"""
    includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
    if not set(includes.get("caps", [])) <= CAPABILITIES or set(excludes.get("caps", [])) & CAPABILITIES:
        return False
    if includes.get("arches") and not ARCHES & set(includes["arches"]):
        return False
    return not ARCHES <= set(excludes.get("arches", []))


def resolved(rule):
    """A rule without its condition, or None where no call is left in it."""
    names = sorted(set(rule["names"]) - set(IO_URING))
    if not names:
        return None
    kept = {"names": names, "action": rule["action"]}
    if rule.get("args"):
        kept["args"] = rule["args"]
    if rule.get("errnoRet") is not None:
        kept["errnoRet"] = rule["errnoRet"]
    return kept


def make(default):
    """Returns the profile."""
    rules = [resolved(rule) for rule in default["syscalls"] if applies(rule)]
    return {
        "defaultAction": default["defaultAction"],
        "defaultErrnoRet": default.get("defaultErrnoRet", 1),
        "architectures": ARCHITECTURES,
        "syscalls": [{"names": IO_URING, "action": "SCMP_ACT_ALLOW"}] + [rule for rule in rules if rule],
    }


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            profile = make(json.load(file))
    except (OSError, ValueError, KeyError) as error:
        sys.exit("make_profile.py: %s: %s" % (sys.argv[1], error))
    json.dump(profile, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
