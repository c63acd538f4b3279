#!/usr/bin/env python3
"""Runs a command under a seccomp profile as a container runtime would load it, through libseccomp.

usage: under_seccomp.py PROFILE.json [--without NAME]... COMMAND...

--without takes a system call out of every rule, so that the profile's default meets it.
"""

import json
import os
import sys

import seccomp

OPERATORS = {
    "SCMP_CMP_EQ": seccomp.EQ,
    "SCMP_CMP_NE": seccomp.NE,
    "SCMP_CMP_LT": seccomp.LT,
    "SCMP_CMP_MASKED_EQ": seccomp.MASKED_EQ,
}


def action(name, errno):
    """libseccomp's action for that of a profile."""
    if name == "SCMP_ACT_ALLOW":
        return seccomp.ALLOW
    if name == "SCMP_ACT_ERRNO":
        return seccomp.ERRNO(errno)
    sys.exit("under_seccomp.py: no action " + name)


def argument(entry):
    """libseccomp's comparison for that of a profile."""
    operator = OPERATORS[entry["op"]]
    if operator == seccomp.MASKED_EQ:
        return seccomp.Arg(entry["index"], operator, entry["value"], entry["valueTwo"])
    return seccomp.Arg(entry["index"], operator, entry["value"])


def load(profile, without):
    """Puts this process under the profile."""
    default = action(profile["defaultAction"], profile["defaultErrnoRet"])
    rules = seccomp.SyscallFilter(default)
    for rule in profile["syscalls"]:
        what = action(rule["action"], rule.get("errnoRet", 1))
        for name in set(rule["names"]) - without:
            # As runtimes do: calls that this libseccomp or processor has not are passed over, and so is a rule that
            # says what the default says.
            if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0 and what != default:
                rules.add_rule(what, name, *map(argument, rule.get("args", [])))
    rules.load()


def main():
    arguments, without = sys.argv[2:], set()
    with open(sys.argv[1], encoding="utf-8") as file:
        profile = json.load(file)
    while arguments[0] == "--without":
        without.add(arguments[1])
        arguments = arguments[2:]
    load(profile, without)
    os.execv(arguments[0], arguments)


main()
