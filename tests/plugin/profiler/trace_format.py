#!/usr/bin/env python3
"""Whether a trace is what the Trace Event Format says that one is, as far as the profiler uses it, and what Perfetto
also asks for: slices of one row lie within each other or apart, and nothing is before 0, which its sorter would
drop.

usage: trace_format.py TRACE.json...

Written from the format's description (Chromium's "Trace Event Format", JSON array format; phases X, M and i).
Perfetto's own trace processor is in no package of Debian's or npm's.

exit codes: 0 right; 1 wrong, with a line for each of the first faults
"""

import collections
import json
import numbers
import sys

FAULTS_MAX = 20
EVERY = {"name": str, "ph": str, "pid": int, "tid": int}
# By phase: the members that it must have, and those that it may have.
PHASES = {
    "X": ({"ts": numbers.Real, "dur": numbers.Real}, {"cat": str, "args": dict}),
    "M": ({"args": dict}, {"cat": str}),
    "i": ({"ts": numbers.Real, "s": str}, {"cat": str, "args": dict}),
}
METADATA = {"process_name", "thread_name"}
SCOPES = {"g", "p", "t"}
SLACK_US = 0.0015  # times have three decimals


def typed(event, members):
    return [name for name, kind in members.items()
            if not isinstance(event.get(name), kind) or isinstance(event.get(name), bool)]


def faults_of(event):
    if not isinstance(event, dict):
        return ["no object"]
    if typed(event, EVERY):
        return ["%s missing, or of a wrong type" % typed(event, EVERY)]
    if event["ph"] not in PHASES:
        return ["phase %r" % event["ph"]]
    must, may = PHASES[event["ph"]]
    found = ["%s missing, or of a wrong type" % name for name in typed(event, must)]
    found += ["%s is of a wrong type" % name for name in typed(event, {k: v for k, v in may.items() if k in event})]
    found += ["member %r" % name for name in event if name not in {**EVERY, **must, **may}]
    if event["ph"] == "M" and (event["name"] not in METADATA or not isinstance(event["args"].get("name"), str)):
        found.append("metadata %r" % event["name"])
    if event["ph"] == "i" and event.get("s") not in SCOPES:
        found.append("scope %r" % event.get("s"))
    if event["ph"] == "X" and not found and event["dur"] < 0:
        found.append("lasts less than no time")
    if "ts" in must and not found and event["ts"] < 0:
        found.append("is before 0")
    return found


def overlaps(slices):
    """Pairs of one row that overlap: neither lies within the other."""
    slices.sort(key=lambda event: (event["ts"], -event["dur"]))
    open_ends = []
    for event in slices:
        end = event["ts"] + event["dur"]
        while open_ends and open_ends[-1][0] <= event["ts"] + SLACK_US:
            open_ends.pop()
        if open_ends and end > open_ends[-1][0] + SLACK_US:
            yield "%r ends after %r, in which it begins, in row %d" % (event["name"], open_ends[-1][1], event["tid"])
        open_ends.append((end, event["name"]))


def check(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    if not isinstance(events, list):
        return ["no array"], 0
    found = ["event %d: %s" % (i, fault) for i, event in enumerate(events) for fault in faults_of(event)]
    rows = collections.defaultdict(list)
    for event in events if not found else ():
        if event["ph"] == "X" and event["tid"] != 0:
            rows[event["pid"], event["tid"]].append(event)
    for slices in rows.values():
        found += overlaps(slices)
    named = {(event["pid"], event["tid"]) for event in events if not found and event["name"] == "thread_name"}
    found += ["row %d of process %d has no name" % (row[1], row[0]) for row in rows if not found and row not in named]
    return found, len(events)


def main():
    wrong = False
    for path in sys.argv[1:]:
        found, count = check(path)
        for fault in found[:FAULTS_MAX]:
            print("%s: %s" % (path, fault))
        print("%s: %d events, %d faults" % (path, count, len(found)))
        wrong = wrong or bool(found) or count == 0
    return 1 if wrong else 0


sys.exit(main())
