#!/usr/bin/env python3
"""Makes a seccomp profile that allows io_uring, and else no more than containerd's default for a pod that drops ALL.

usage: make_profile.py seccomp_default.go > tcpx-io-uring.json

seccomp_default.go is containerd's default profile (contrib/seccomp in its source; Debian's package
golang-github-containerd-containerd-dev has it). The result is what it means for a process without capabilities, on
amd64 or arm64, with Linux 4.8 or later. It differs in two things. What is refused is answered
with ENOSYS and not with EPERM, so that newer C libraries go on without calls that the list does not know. And there are
no sockets of AF_ALG and AF_VSOCK, also where the list has them (containerd's before 1.7), nor socketcall, which no
filter can look into: old 32-bit programs have no sockets.

exit codes: 0 done; 1 the file can't be read, or is written in another form; 2 wrong use
"""

import json
import re
import sys

IO_URING = ["io_uring_enter", "io_uring_register", "io_uring_setup"]
ARCHITECTURES = ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"]
OURS = {"amd64", "386", "arm64", "arm"}
ENOSYS = 38
OPERATORS = {"OpEqualTo": "SCMP_CMP_EQ", "OpNotEqual": "SCMP_CMP_NE", "OpMaskedEqual": "SCMP_CMP_MASKED_EQ",
             "OpLessThan": "SCMP_CMP_LT", "OpGreaterThan": "SCMP_CMP_GT"}
# linux/sched.h and sys/socket.h.
CONSTANTS = {"CLONE_NEWNS": 0x20000, "CLONE_NEWCGROUP": 0x2000000, "CLONE_NEWUTS": 0x4000000,
             "CLONE_NEWIPC": 0x8000000, "CLONE_NEWUSER": 0x10000000, "CLONE_NEWPID": 0x20000000,
             "CLONE_NEWNET": 0x40000000, "AF_ALG": 38, "AF_VSOCK": 40}
FAMILIES = 46  # of Linux 6


def number(text):
    """The value of "0x8", "unix.CLONE_NEWNS | unix.CLONE_NEWUTS" or "unix.AF_ALG + 1"."""
    total = 0
    for term in re.split(r"\s*[|+]\s*", text.strip()):
        total += CONSTANTS[term[5:]] if term.startswith("unix.") else int(term, 0)
    return total


def rule_of(block):
    """A rule of the profile, of the text of one of Go's."""
    kept = {"names": sorted(set(re.findall(r'"(\w+)"', block[:block.index("}")])) - set(IO_URING))}
    action = re.search(r"Action:\s*specs\.Act(\w+)", block).group(1)
    kept["action"] = {"Allow": "SCMP_ACT_ALLOW", "Errno": "SCMP_ACT_ERRNO"}[action]
    arguments = []
    for index, value, two, operator in re.findall(
            r"Index:\s*(\d+),\s*Value:\s*([^,]+),\s*(?:ValueTwo:\s*([^,]+),\s*)?Op:\s*specs\.(\w+)", block):
        arguments.append({"index": int(index), "value": number(value), "valueTwo": number(two or "0"),
                          "op": OPERATORS[operator]})
    if len(arguments) != len(re.findall(r"Index:", block)):
        raise ValueError("an argument of another form: " + block)
    if arguments:
        kept["args"] = arguments
    if action == "Errno":
        kept["errnoRet"] = ENOSYS
    return kept


def applying(source):
    """Yields the text of each rule that holds."""
    text = re.sub(r"//[^\n]*", "", source[source.index("func DefaultProfile"):])
    marks = ["s := &specs.LinuxSeccomp{", "switch runtime.GOARCH {", "admin := false", "if !admin {"]
    ends = [text.index(mark) for mark in marks] + [len(text)]
    parts = [text[begin:end] for begin, end in zip([0] + ends, ends)]
    # The list; what the version of the kernel adds; the processor; capabilities: there are none; and without
    # CAP_SYS_ADMIN.
    for part, holds in zip(parts, (None, None, lambda labels: bool(OURS & labels), lambda labels: False,
                                   lambda labels: not labels)):
        labels = set()
        for line, block in re.findall(r'^\s*(case [^\n]*:|default:)$|Names:(.*?)(?=Names:|^\s*case |^\s*default:|\Z)',
                                      part, re.M | re.S):
            if line:
                labels = set(re.findall(r'"(\w+)"', line))
            elif holds is None or holds(labels):
                yield block


def socket_rules():
    """Lets through every family but two. A filter compares all 64 bits of an argument, and the kernel uses 32 of
    them: only "less than" and "equal" are safe."""
    others = range(CONSTANTS["AF_ALG"] + 1, FAMILIES)
    tests = [("SCMP_CMP_LT", CONSTANTS["AF_ALG"])]
    tests += [("SCMP_CMP_EQ", family) for family in others if family != CONSTANTS["AF_VSOCK"]]
    return [{"names": ["socket"], "action": "SCMP_ACT_ALLOW",
             "args": [{"index": 0, "value": value, "valueTwo": 0, "op": operator}]} for operator, value in tests]


def make(source):
    """Returns the profile."""
    rules = [rule_of(block) for block in applying(source)]
    for rule in rules:
        rule["names"] = [name for name in rule["names"] if name not in ("socket", "socketcall")]
    rules += socket_rules()
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": ENOSYS,
        "architectures": ARCHITECTURES,
        "syscalls": [{"names": IO_URING, "action": "SCMP_ACT_ALLOW"}] + [rule for rule in rules if rule["names"]],
    }


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            profile = make(file.read())
    except (OSError, ValueError, KeyError, AttributeError) as error:
        sys.exit("make_profile.py: %s: %s" % (sys.argv[1], error))
    json.dump(profile, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
