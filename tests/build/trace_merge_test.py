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
    lines = ['{"name":"tcpx_clock","ph":"i","s":"p","pid":9,"tid":0,"ts":%s,"args":{"realtime_ns":%d}}'
             % (clock_ts, realtime_ns)]
    return "[\n" + ",\n".join(lines + [json.dumps(event) for event in events])


def process(name):
    return {"name": "tcpx_process", "ph": "i", "pid": 9, "tid": 0, "ts": 0, "args": {"self": name}}


def offset(me, peer, ts, ns, round_trip_ns):
    return {"name": "tcpx_clock_offset", "ph": "i", "pid": 9, "tid": 0, "ts": ts,
            "args": {"self": me, "peer": peer, "offset_ns": ns, "round_trip_ns": round_trip_ns}}


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
            events = json.load(file)
        self.assertEqual(min(e["ts"] for e in events if "ts" in e), 0)
        return run, events

    def test_two_clocks_become_one(self):
        # The second host was started 5 s before the first one.
        one = self.write("tcpx-trace.a.9.json", trace(1000, 10**18, [event("here", 1500)]) + "\n]\n")
        two = self.write("tcpx-trace.b.9.json", trace(5001000, 10**18, [event("there", 5001700)]) + "\n]\n")
        _, events = self.merge(one, two)
        by_name = {e["name"]: e for e in events}
        self.assertEqual(by_name["here"]["ts"], 500)
        self.assertEqual(by_name["there"]["ts"], 700)
        self.assertNotEqual(by_name["here"]["pid"], by_name["there"]["pid"])

    def times(self, *arguments):
        """Times of the slices, since the first event of the first trace."""
        run, events = self.merge(*arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run, {e["name"]: round(e["ts"] - events[0]["ts"], 3) for e in events if e["ph"] == "X"}

    # Perfetto drops what is before 0; a trace is in the order in which events ended.
    def test_times_begin_with_the_first_event_of_all(self):
        a = self.write("tcpx-trace.a.9.json", trace(10, 10**18, [event("late", 9), event("early", 4)]))
        b = self.write("tcpx-trace.b.9.json", trace(0, 10**18, [event("behind", 7), event("ahead", -8)]))
        _, events = self.merge(a, b)
        times = {e["name"]: e["ts"] for e in events if e["ph"] == "X"}
        self.assertEqual({"ahead": 0, "early": 2, "late": 7, "behind": 15}, times)

    def test_a_clock_that_is_set_back_puts_nothing_before_the_begin(self):
        clock = json.loads(trace(30, 10**18 - 10**9, [])[2:])
        a = self.write("tcpx-trace.a.9.json", trace(10, 10**18, [event("one", 10), event("two", 29), clock]))
        self.times(a)

    def test_measured_clocks_beat_those_of_the_day(self):
        # The day of the second host is an hour late; its clock is 700 ms ahead of the first one's, as that has
        # measured.
        a = self.write("tcpx-trace.a.9.json",
                       trace(0, 10**18, [process("a/9/1"), offset("a/9/1", "b/9/1", 5, 7 * 10**8, 8000),
                                         event("here", 100)]))
        b = self.write("tcpx-trace.b.9.json",
                       trace(0, 10**18 - 3600 * 10**9, [process("b/9/1"), event("there", 700150)]))
        run, times = self.times(a, b)
        self.assertEqual(times, {"here": 100, "there": 150})
        self.assertIn("2 ranks are joined by measured clocks, within 4 us", run.stdout)
        # In reverse the measure leads back.
        run, times = self.times(b, a)
        self.assertAlmostEqual(times["there"] - times["here"], 50)
        self.assertNotIn("clock of the day", run.stdout)

    def test_clocks_are_joined_along_a_ring_by_the_best_measures(self):
        # c is 1 ms ahead of b, which is 1 ms ahead of a; what c says of a is worse, and wrong by 400 us.
        a = self.write("tcpx-trace.a.9.json",
                       trace(0, 10**18, [process("a"), offset("a", "b", 5, 10**6, 4000), event("one", 10)]))
        b = self.write("tcpx-trace.b.9.json",
                       trace(0, 10**18, [process("b"), offset("b", "c", 5, 10**6, 4000), event("two", 1020)]))
        c = self.write("tcpx-trace.c.9.json",
                       trace(0, 10**18, [process("c"), offset("c", "a", 5, -2400000, 900000), event("three", 2030)]))
        _, times = self.times(a, b, c)
        self.assertEqual(times, {"one": 10, "two": 20, "three": 30})

    def test_clocks_drift(self):
        a = self.write("tcpx-trace.a.9.json",
                       trace(0, 10**18, [offset("a", "b", 0, 0, 10), offset("a", "b", 10**6, 10**8, 10),
                                         event("here", 500000)]))
        b = self.write("tcpx-trace.b.9.json", trace(0, 10**18, [process("b"), event("there", 550000)]))
        _, times = self.times(a, b)
        self.assertAlmostEqual(times["here"], times["there"], delta=0.01)

    def test_whom_no_measure_reaches_is_laid_by_the_day(self):
        a = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [offset("a", "b", 0, 10**9, 10), event("here", 5)]))
        b = self.write("tcpx-trace.b.9.json", trace(0, 10**18, [process("b"), event("there", 1000006)]))
        c = self.write("tcpx-trace.c.9.json", trace(10**6, 10**18, [process("c"), event("alone", 10**6 + 9)]))
        run, times = self.times(a, b, c)
        self.assertEqual(times, {"here": 5, "there": 6, "alone": 9})
        self.assertIn("tcpx-trace.c.9.json is laid by the clock of the day", run.stdout)

    def test_a_measure_that_took_long_counts_for_nothing(self):
        a = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [
            offset("a", "b", 0, 0, 10000), offset("a", "b", 10, 10**8, 3 * 10**8), event("here", 500)]))
        b = self.write("tcpx-trace.b.9.json", trace(0, 10**18, [process("b"), event("there", 500)]))
        _, times = self.times(a, b)
        self.assertEqual(times["here"], times["there"])

    def test_what_lies_within_something_else_still_does(self):
        # The clocks drift apart, and times are far from zero.
        up = 7.5e10
        inner = [{**event("in%d" % i, round(up + i * 0.1, 3)), "dur": 0.1} for i in range(1000)]
        b = self.write("tcpx-trace.b.9.json",
                       trace(up, 18 * 10**17, [process("b"), {**event("out", up), "dur": 100}, *inner]))
        a = self.write("tcpx-trace.a.9.json", trace(up, 18 * 10**17, [
            offset("a", "b", up - 1000, -1700, 10), offset("a", "b", up + 10**6, 333333, 10)]))
        for traces in ((a, b), (b, a), (b,)):
            _, events = self.merge(*traces)
            spans = {e["name"]: (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)) for e in events
                     if e["ph"] == "X"}
            outer = spans.pop("out")
            end = outer[0]
            for begin_ns, end_ns in (spans["in%d" % i] for i in range(1000)):
                self.assertEqual(begin_ns, end)
                end = end_ns
            self.assertEqual(end, outer[1])

    def test_an_offset_is_added(self):
        one = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [event("here", 5)]) + "\n]\n")
        two = self.write("tcpx-trace.b.9.json", trace(0, 10**18, [event("there", 5)]) + "\n]\n")
        _, times = self.times("--offset", "b=-2", one, two)
        self.assertEqual(times, {"here": 5, "there": 3})

    def test_an_offset_is_of_one_host_alone(self):
        names = ("node10.9.json", "node1.9.json", "node1.rack.9.json", "node1.7-4026532001.json")
        traces = [self.write("tcpx-trace." + name, trace(0, 10**18, [event(name, 5)]) + "\n]\n") for name in names]
        _, times = self.times("--offset", "node1=2", *traces)
        self.assertEqual(times, dict(zip(names, (5, 7, 5, 7))))
        run, _ = self.merge("--offset", "node2=2", *traces)
        self.assertEqual(run.returncode, 2)
        self.assertIn("tcpx-trace.node2.PID.json", run.stderr)

    def test_a_cut_trace_is_taken_as_far_as_it_goes(self):
        cut = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [event("here", 5)]) + ',\n{"name":"lost","ph":"X","pi')
        _, events = self.merge(cut)
        self.assertEqual([e["name"] for e in events], ["tcpx_clock", "here"])

    def test_both_parts_of_a_trace_are_one_process(self):
        older = self.write("tcpx-trace.a.9.older.json", trace(0, 10**18, [event("old", 5)]) + "\n]\n")
        later = self.write("tcpx-trace.a.9.json", trace(0, 10**18, [event("new", 8)]) + "\n]\n")
        _, events = self.merge(older, later)
        self.assertEqual({e["pid"] for e in events}, {1})

    def test_one_part_of_a_trace_may_be_without_a_clock(self):
        older = self.write("tcpx-trace.a.9.older.json", trace(0, 10**18, [event("old", 5)]) + "\n]\n")
        later = self.write("tcpx-trace.a.9.json", "[\n" + json.dumps(event("new", 8)) + "\n]\n")
        _, times = self.times(older, later)
        self.assertEqual({"old": 5, "new": 8}, times)

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
