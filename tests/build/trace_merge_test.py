#!/usr/bin/env python3
"""tools/trace_merge: traces of two hosts on one clock.

usage: trace_merge_test.py TRACE_MERGE
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

MERGE = os.path.abspath(sys.argv.pop(1))


def trace(clock_ts, realtime_ns, events):
    lines = ['{"name":"tcpx_clock","ph":"i","s":"p","pid":9,"tid":0,"ts":%s,"args":{"realtime_ns":%d}}' % (clock_ts, realtime_ns)]
    return "[\n" + ",\n".join(lines + [json.dumps(event) for event in events])


def event(name, ts):
    return {"name": name, "ph": "X", "pid": 9, "tid": 1, "ts": ts, "dur": 1}


class TraceMergeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def merge(self, *arguments):
        out = os.path.join(self.folder, "merged.json")
        run = subprocess.run([MERGE, "-o", out, *arguments], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return run, []
        with open(out, encoding="utf-8") as file:
            return run, json.load(file)

    def test_two_clocks_become_one(self):
        # The second host was started 5 s before the first one.
        one = self.write("tcpx-trace.a.9.json", trace(1000, 10**18, [event("here", 1500)]) + "\n]\n")
        two = self.write("tcpx-trace.b.9.json", trace(5001000, 10**18, [event("there", 5001700)]) + "\n]\n")
        _, events = self.merge(one, two)
        by_name = {e["name"]: e for e in events}
        self.assertEqual(by_name["here"]["ts"], 500)
        self.assertEqual(by_name["there"]["ts"], 700)
        self.assertNotEqual(by_name["here"]["pid"], by_name["there"]["pid"])

    def test_an_offset_is_added(self):
        one = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [event("here", 5)]) + "\n]\n")
        two = self.write("tcpx-trace.b.9.json", trace(0, 10**18, [event("there", 5)]) + "\n]\n")
        _, events = self.merge("--offset", "trace.b=-2", one, two)
        self.assertEqual([e["ts"] for e in events if e["ph"] == "X"], [5, 3])

    def test_a_cut_trace_is_taken_as_far_as_it_goes(self):
        cut = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [event("here", 5)]) + ',\n{"name":"lost","ph":"X","pi')
        _, events = self.merge(cut)
        self.assertEqual([e["name"] for e in events], ["tcpx_clock", "here"])

    def test_both_parts_of_a_trace_are_one_process(self):
        older = self.write("tcpx-trace.a.9.older.json", trace(0, 10**18, [event("old", 5)]) + "\n]\n")
        later = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [event("new", 8)]) + "\n]\n")
        _, events = self.merge(older, later)
        self.assertEqual({e["pid"] for e in events}, {1})

    def test_what_is_no_trace_is_said(self):
        run, _ = self.merge(self.write("other.json", '[\n{"name":"x","ph":"X","pid":1,"tid":1,"ts":1}\n]\n'))
        self.assertEqual(run.returncode, 1)
        self.assertIn("tcpx_clock", run.stderr)
        run, _ = self.merge(os.path.join(self.folder, "missing.json"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("missing.json", run.stderr)

    def test_wrong_use_is_2(self):
        run, _ = self.merge("--offset", "a=soon", "x.json")
        self.assertEqual(run.returncode, 2)


if __name__ == "__main__":
    unittest.main()
