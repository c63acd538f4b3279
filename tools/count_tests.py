#!/usr/bin/env python3
"""Counts test cases over several `bazel test` runs and says which failed or were skipped, and why.

usage: count_tests.py [--checks FILE] [--cases FILE] CONFIG=EVENTS...

EVENTS is what --build_event_json_file wrote, so that cached results count and stale ones do not. One GoogleTest case
counts as one; a test that is no GoogleTest (a shell script) counts as one, and as skipped when it printed a line that
starts with "SKIPPED:". A test that could not be built, or that failed after its last case (a leak, say), is a failure.
--checks FILE has lines of name, passed|failed|skipped and reason, separated by tabs. --cases FILE is written: a line
per case, with its folder, however many configurations ran it; `diff` of two such files says what was lost or has come.

Exits 1 when something failed or nothing passed.
"""

import argparse
import collections
import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree

Case = collections.namedtuple("Case", "target name result reason")


def read_events(path):
    """Returns the set of test labels that were asked for and {(label, run, shard): result event}."""
    wanted, results = set(), {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        ident = event.get("id", {})
        if "targetConfigured" in ident and event.get("configured", {}).get("testSize"):
            wanted.add(ident["targetConfigured"]["label"])
        if "testResult" in event:
            key = ident["testResult"]
            # A later attempt replaces an earlier one.
            results[key["label"], key.get("run", 0), key.get("shard", 0)] = event["testResult"]
    return wanted, results


def outputs(result):
    """Returns {name: path} of what one test run left, such as test.xml and test.log."""
    files = {}
    for output in result.get("testActionOutput", []):
        uri = urllib.parse.urlparse(output.get("uri", ""))
        if uri.scheme == "file":
            files[output["name"]] = pathlib.Path(urllib.parse.unquote(uri.path))
    return files


def gtest_cases(label, root):
    """Yields the cases of a report that GoogleTest wrote; Bazel's own reports have no class names."""
    for case in root.iter("testcase"):
        if "classname" not in case.attrib:
            continue
        name = case.get("classname") + "." + case.get("name", "")
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            yield Case(label, name, "failed", "")
        elif skipped is not None:
            message = skipped.get("message") or skipped.text or ""
            # GoogleTest begins the message with "file:line".
            lines = [line for line in message.splitlines() if line.strip()]
            yield Case(label, name, "skipped", " ".join(lines[1:] or lines))
        elif case.get("status") == "notrun":
            yield Case(label, name, "skipped", "disabled in the source")
        else:
            yield Case(label, name, "passed", "")


def script_case(label, passed, log):
    """Returns the one case of a test that is no GoogleTest."""
    if not passed:
        return Case(label, "", "failed", "")
    lines = log.read_text(errors="replace").splitlines() if log and log.exists() else []
    reasons = [line[len("SKIPPED:") :].strip() for line in lines if line.startswith("SKIPPED:")]
    return Case(label, "", "skipped", "; ".join(reasons)) if reasons else Case(label, "", "passed", "")


def cases_of(label, result):
    """Returns the cases of one test run."""
    files = outputs(result)
    passed = result.get("status") in ("PASSED", "FLAKY")
    cases = []
    report = files.get("test.xml")
    if report and report.exists():
        try:
            cases = list(gtest_cases(label, xml.etree.ElementTree.parse(report).getroot()))
        except xml.etree.ElementTree.ParseError:
            pass
    if not cases:
        case = script_case(label, passed, files.get("test.log"))
        return [case if passed else case._replace(reason=result.get("status", ""))]
    if not passed and not any(case.result == "failed" for case in cases):
        cases.append(Case(label, "", "failed", "the process failed after its last case"))
    return cases


def read_config(config, path):
    """Returns the cases of one bazel run."""
    wanted, results = read_events(path)
    cases = []
    for (label, _, _), result in sorted(results.items()):
        cases += cases_of(label, result)
    for label in sorted(wanted - {label for label, _, _ in results}):
        cases.append(Case(label, "", "failed", "could not be built or run"))
    return [case._replace(target=config + " " + case.target) for case in cases]


def read_checks(path):
    """Returns the checks that are no tests, as cases."""
    if not path or not path.exists():
        return []
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    return [Case("check", name, result, reason) for name, result, reason in rows]


def write_cases(cases, path):
    """Writes each case as often as the configuration that has most of it: programs of a folder may share names."""
    counts = collections.defaultdict(collections.Counter)
    for case in cases:
        config, _, label = case.target.partition(" ")
        if config != "check":
            folder, _, target = label.partition(":")
            counts[config][folder + " " + (case.name or target)] += 1
    most = collections.Counter()
    for counter in counts.values():
        most |= counter
    path.write_text("".join(sorted(line + "\n" for line in most.elements())))


def list_failed(cases):
    """Prints one line per failure."""
    for case in cases:
        reason = " (%s)" % case.reason if case.reason else ""
        print("[  FAILED  ] %s%s" % (" ".join(filter(None, (case.target, case.name))), reason))


def list_skipped(cases):
    """Prints one line per target and reason."""
    groups = collections.OrderedDict()
    for case in cases:
        groups.setdefault((case.target, case.reason or "no reason given"), []).append(case.name)
    for (target, reason), names in groups.items():
        what = names[0] if len(names) == 1 else "%d cases" % len(names)
        print("[  SKIPPED ] %s: %s" % (" ".join(filter(None, (target, what))), reason))


def main():
    parser = argparse.ArgumentParser(description="counts test cases of bazel test runs")
    parser.add_argument("--checks", type=pathlib.Path)
    parser.add_argument("--cases", type=pathlib.Path)
    parser.add_argument("events", nargs="*", metavar="CONFIG=EVENTS")
    args = parser.parse_args()
    cases = read_checks(args.checks)
    for argument in args.events:
        config, _, path = argument.partition("=")
        cases += read_config(config, pathlib.Path(path))
    if args.cases:
        write_cases(cases, args.cases)
    # A failed build is a failure of its own only where no test of that configuration shows it.
    broken = {c.target.split()[0] for c in cases if c.result == "failed" and c.target != "check"}
    cases = [c for c in cases if c.target != "check" or c.name.partition("build.")[2] not in broken]
    by_result = {name: [c for c in cases if c.result == name] for name in ("passed", "failed", "skipped")}
    print("[==========] %d test cases from %d targets ran." % (len(cases), len({c.target for c in cases})))
    list_skipped(by_result["skipped"])
    list_failed(by_result["failed"])
    passed, failed, skipped = (len(by_result[name]) for name in ("passed", "failed", "skipped"))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    # A check is no test; where checks alone were asked for, it will do.
    ran = any(c.result == "passed" and (c.target != "check" or not args.events) for c in cases)
    return 0 if failed == 0 and ran else 1


if __name__ == "__main__":
    sys.exit(main())
