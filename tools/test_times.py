#!/usr/bin/env python3
"""Prints where the time of the last run of tools/test went.

usage: test_times.py [--most N] FOLDER

FOLDER has what each configuration left: CONFIG.profile.gz (bazel --profile) and CONFIG.seconds (how long it took).
Seconds are those of the clock while an action ran, so that those of actions that ran at the same time add up to more
than the run took. What came out of a cache has no row.
"""

import argparse
import collections
import gzip
import json
import pathlib
import re

KINDS = {"Compiling": "compile", "Linking": "link", "Testing": "run"}
Row = collections.namedtuple("Row", "target compile link run")


def read_trace(path):
    """Returns the events of a profile."""
    with gzip.open(path, "rt", errors="replace") as file:
        return json.load(file)["traceEvents"]


def target_of(event):
    """Returns the target that an action is for; a test names it, and each shard of it is its own."""
    words = event["name"].split()
    return re.sub(r" \(shard.*", "", words[1]) if words[0] == "Testing" else event["args"].get("target", words[1])


def rows_of(events):
    """Returns a row per target: seconds of compiling, linking and running, all shards together."""
    sums = collections.defaultdict(lambda: dict.fromkeys(KINDS.values(), 0.0))
    for event in events:
        if event.get("cat") != "action processing" or event.get("ph") != "X":
            continue
        kind = KINDS.get(event["name"].split()[0])
        if kind:
            sums[target_of(event)][kind] += event["dur"] / 1e6
    rows = [Row(target, **seconds) for target, seconds in sums.items()]
    return sorted(rows, key=lambda row: -(row.compile + row.link + row.run))


def critical_path(events):
    """Returns (seconds, action) of each step that nothing could have run meanwhile."""
    steps = [event for event in events if event.get("cat") == "critical path component" and event["dur"] > 50000]
    return [(event["dur"] / 1e6, re.sub(r"^action '(.*)'$", r"\1", event["name"])) for event in steps]


def table(rows):
    """Prints rows and nothing else."""
    print("  %8s %8s %8s  %s" % ("compile", "link", "run", "target"))
    for row in rows:
        print("  %8.1f %8.1f %8.1f  %s" % (row.compile, row.link, row.run, row.target))


def show(config, folder, most):
    """Prints one configuration."""
    events = read_trace(folder / (config + ".profile.gz"))
    rows = rows_of(events)
    total = Row("all", *(sum(getattr(row, kind) for row in rows) for kind in KINDS.values()))
    print("%s: %s s by the clock" % (config, (folder / (config + ".seconds")).read_text().strip()))
    table([total] + rows[:most])
    if len(rows) > most:
        print("  ... and %d targets more (--most)" % (len(rows) - most))
    print("  critical path:")
    for seconds, action in critical_path(events):
        print("  %8.1f  %s" % (seconds, action))


def main():
    parser = argparse.ArgumentParser(description="where the time of the last run of tools/test went")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    # Those that came to their end.
    for seconds in sorted(args.folder.glob("*.seconds")):
        show(seconds.name[: -len(".seconds")], args.folder, args.most)


if __name__ == "__main__":
    main()
