#!/usr/bin/env python3
"""sweep_test: tools/sweep recommends what is best, and nothing within the noise; it names failures and wrong use.

usage: sweep_test.py SWEEP

A stand-in for net_bench has figures that follow from the variables.
"""

import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SWEEP = os.path.abspath(sys.argv.pop(1))
# Four lanes make it twice as fast, two threads by a hair, both no more than four lanes; a congestion control is
# unknown.
STAND_IN = r"""#!/bin/sh
case "$*" in
  *--listen*) echo "net_bench: listening on port 7"; exit 0 ;;
  *--connect\ there:7*) ;;
  *--connect*) echo "wrong port" >&2; exit 1 ;;
esac
if [ "$TCPX_CONGESTION" = bogus ] || [ -n "$FAIL" ]; then
  echo "net_bench: rank 0: no such congestion control" >&2
  exit 1
fi
case $TCPX_LANES,$TCPX_THREADS in
  4,2) latency=2.475247525 bandwidth=6.06 ;;
  4,*) latency=2.5 bandwidth=6 ;;
  *,2) latency=4.95049505 bandwidth=3.03 ;;
  *) latency=5 bandwidth=3 ;;
esac
line='{"mode": "%s", "phase": "near", "implementation": "%s", "connections": 1, "bytes": 8, "median": %s}'
printf '{"modes": [{"mode": "latency", "phase": "near"}, {"mode": "bandwidth", "phase": "near"}], "results": ['
printf "$line, $line, $line]}" latency plugin $latency bandwidth plugin $bandwidth bandwidth raw-1 99
"""


class Page(html.parser.HTMLParser):
    """Captions and cells of a page."""

    def __init__(self, text):
        super().__init__()
        self.captions, self.cells, self.at = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.at = {"caption": self.captions, "td": self.cells}.get(tag)

    def handle_data(self, data):
        if self.at is not None:
            self.at.append(data)
            self.at = None


class SweepTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bench = self.folder / "net_bench"
        self.bench.write_text(STAND_IN)
        self.bench.chmod(0o755)

    def sweep(self, *arguments, code=0, **variables):
        command = [SWEEP, "--net-bench", str(self.bench), "--plugin", "/p.so", *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TCPX_")}
        environment.update(variables)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done

    def test_the_best_with_the_fewest_settings_is_recommended(self):
        done = self.sweep("--lanes", "default,1,4", "--threads", "default,2", "--json", "--rounds", "2")
        result = json.loads(done.stdout)
        self.assertEqual("TCPX_LANES=4", result["recommended"])
        self.assertEqual(0, result["noise"])
        scores = {row["name"]: row["score"] for row in result["combinations"]}
        self.assertEqual(6, len(scores))
        self.assertAlmostEqual(2, scores["TCPX_LANES=4"])
        self.assertAlmostEqual(2.02, scores["TCPX_LANES=4 TCPX_THREADS=2"])
        self.assertEqual(1, scores["the defaults"])

    def test_nothing_within_the_noise_is_recommended(self):
        done = self.sweep("--lanes", "1,2", "--threads", "2,default", "--rounds", "2")
        self.assertIn("# recommended: the defaults", done.stdout)

    def test_a_callers_variable_is_part_of_the_defaults(self):
        done = self.sweep("--threads", "2", "--json", TCPX_LANES="4")
        self.assertIsNone(json.loads(done.stdout)["recommended"])
        done = self.sweep("--lanes", "4", "--json", TCPX_LANES="9")
        self.assertEqual("TCPX_LANES=4", json.loads(done.stdout)["recommended"])

    def test_what_fails_is_named_and_not_tried_again(self):
        done = self.sweep("--congestion", "bogus,cubic")
        self.assertIn("TCPX_CONGESTION=bogus: net_bench: rank 0: no such congestion control", done.stdout)
        self.assertEqual(1, done.stderr.count("TCPX_CONGESTION=bogus"))
        self.assertEqual(3, done.stderr.count("TCPX_CONGESTION=cubic"))

    def test_without_the_defaults_there_is_no_result(self):
        self.assertIn("the defaults can't be measured", self.sweep(code=1, FAIL="1").stderr)

    def test_the_page_has_a_heat_map_of_each_two_axes(self):
        path = self.folder / "page.html"
        self.sweep("--lanes", "1,4", "--threads", "0,2", "--engine", "epoll,io_uring", "--rounds", "1", "--report",
                   str(path))
        page = Page(path.read_text())
        pairs = ["TCPX_LANES (down) and TCPX_THREADS", "TCPX_LANES (down) and TCPX_ENGINE",
                 "TCPX_THREADS (down) and TCPX_ENGINE"]
        self.assertEqual(pairs + ["All combinations"], page.captions)
        self.assertEqual(["1.000", "1.010", "2.000", "2.020"], page.cells[:4])
        self.assertNotRegex(path.read_text(), r"src=|<link|url\(")
        self.sweep("--lanes", "4", "--report", "/nowhere/page.html", code=1)

    def test_between_two_hosts(self):
        done = self.sweep("--lanes", "4", "--host", "there", "--start", "bash -c", "--remote", str(self.bench),
                          "--json")
        self.assertEqual("TCPX_LANES=4", json.loads(done.stdout)["recommended"])
        done = self.sweep("--host", "there", "--start", "bash -c", "--remote", "/nowhere/net_bench", code=1)
        self.assertIn("/nowhere/net_bench", done.stderr)

    def test_wrong_use(self):
        cases = {
            ("--bogus",): "unrecognized arguments: --bogus",
            ("--lanes", "1,,2"): "--lanes takes values with commas between",
            ("--lanes", "1,1"): "each once",
            ("--rounds", "0"): "--rounds is 1 or more",
            ("--rounds", "many"): "invalid int value",
            ("--host", "a", "--wire", "rack"): "exclude each other",
            ("--lanes", ",".join(map(str, range(1, 900)))): "more than 2000 runs",
            ("--for", "fun"): "invalid choice",
        }
        for arguments, text in cases.items():
            self.assertIn(text, self.sweep(*arguments, code=2).stderr)
        self.assertIn("usage: tools/sweep", self.sweep("--help").stdout)


unittest.main()
