#!/usr/bin/env python3
"""report_test: each series is drawn on the page of net_bench --report, in a headless Chromium, by day and in the dark.

usage: report_test.py NET_BENCH PLUGIN LOOKS

The pixels are those of made-up runs, whose series keep apart. The page of a real run must show everything, too.
Skipped, aloud, where there is no Chromium; then only the page's text is looked at.
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NET_BENCH, PLUGIN, LOOKS = (pathlib.Path(name).resolve() for name in sys.argv[1:])
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZES = (8, 1024, 65536, 1 << 20)


def result(mode, size, connections, implementation, value, unit):
    """A figure as net_bench --json has it."""
    found = dict(mode=mode, bytes=size, connections=connections, window=8, implementation=implementation, kept=3,
                 unit=unit)
    found.update(phase="unchecked", median=value, lower_quartile=value * 0.97, upper_quartile=value * 1.03)
    return dict(found, ns_per_message=value * 1000, **({"p99": value * 4} if mode == "latency" else {}))


def ratio(mode, size, connections, floor, value):
    found = dict(mode=mode, bytes=size, connections=connections, phase="unchecked", floor=floor, ratio=value)
    return dict(found, enough_samples=False)


def made_up():
    """A run whose series keep apart: latency over sizes, bandwidth over connections, an all-reduce."""
    run = dict(configuration=[["note", "made up"], ["machine", "<b>none</b>"]], results=[], ratios=[], costs=[],
               mixed=[])
    run.update(optional_recv=[], modes=[dict(mode=name, phase="unchecked", seconds=1)
                                        for name in ("latency", "bandwidth")])
    for place, size in enumerate(SIZES):
        for name, value in (("plugin", 10), ("raw-1", 4), ("raw-each-way", 25), ("vs", 60)):
            run["results"].append(result("latency", size, 1, name, value * (1 + place), "us"))
        run["ratios"] += [ratio("latency", size, 1, "raw-1", 2.5), ratio("latency", size, 1, "vs", 1 / 6)]
    for connections in (1, 4, 16):
        for name, value in (("plugin", 5), ("raw-2", 2)):
            run["results"].append(result("bandwidth", 1 << 20, connections, name, value * connections, "GB/s"))
        run["ratios"].append(ratio("bandwidth", 1 << 20, connections, "raw-2", 2.5))
    run["allreduce"] = [dict(bytes=size, ranks=2, busbw_gbps=size / 1000, wrong=0) for size in SIZES]
    return run


def bench(scratch, *more):
    """A quick run with a page; returns its text."""
    page = scratch / "report.html"
    command = [NET_BENCH, "--plugin", PLUGIN, "--vs", PLUGIN, "--raw", "--no-priority", "--no-pin", "--yield",
               "--phase", "any"]
    command += ["--keep-disturbed", "--samples", "1", "--sample-ms", "5", "--mode", "latency,bandwidth", "-b", "1K",
                "-e", "64K"]
    command += ["-f", "8", "--report", page, "--note", "of the test", *more]
    environment = dict(os.environ, NCCL_SOCKET_IFNAME="lo")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("FAILED: net_bench: exit code %d: %s" % (done.returncode, done.stdout))
    return page.read_text()


def look(scratch, page, dark):
    """What Chromium makes of a page."""
    errors = "<script>const faults = []; onerror = (text) => faults.push(text);</script>\n<style>"
    looked = scratch / "looked.html"
    script = "<script>%s</script></html>" % LOOKS.read_text()
    looked.write_text(page.replace("<style>", errors, 1).replace("</html>", script))
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    command += ["--user-data-dir=%s" % (scratch / "profile"), "--blink-settings=preferredColorScheme=%d" % (not dark)]
    done = subprocess.run(
        command + ["--virtual-time-budget=10000", "file://%s" % looked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, HOME=str(scratch)),
    )
    found = re.search(r'<pre id="looked">(.*?)</pre>', done.stdout, re.S)
    if not found:
        sys.exit("FAILED: the page has not come so far: %s %s" % (done.stdout[-2000:], done.stderr[-2000:]))
    return json.loads(html.unescape(found.group(1)))


def expect(holds, text):
    if not holds:
        sys.exit("FAILED: " + text)


def check_drawn(looked):
    """Every series of every chart of the made-up run."""
    charts = {chart["title"]: {one["name"]: one for one in chart["series"]} for chart in looked["charts"]}
    four = {"plugin", "floor: bare sockets", "a bare socket each way", "second plugin"}
    wanted = {
        "latency: half round trip, median and quartiles": four,
        "latency: 99th percentile": four - {"a bare socket each way"},
        "latency: ratio, below 1 is faster": {"plugin / floor", "plugin / second plugin"},
        "bandwidth, 1M: median and quartiles": {"plugin", "floor: bare sockets"},
        "bandwidth, 1M: ratio, above 1 is faster": {"plugin / floor"},
        "allreduce: bus bandwidth": {"plugin"},
    }
    expect({title: set(series) for title, series in charts.items()} == wanted, "the charts are %s" % charts)
    for title, series in charts.items():
        for name, one in series.items():
            drawn = one["marks"] == one["points"] and one["line"] > 0.25
            expect(drawn, "%s: %s is not drawn: %s" % (title, name, one))
    expect(looked["ratios"] == len(SIZES) + 3, "%d ratios in the tables" % looked["ratios"])


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        made = scratch / "made.json"
        made.write_text(json.dumps(made_up()))
        page = bench(scratch, "--also", made)
        expect("of the test" in page and "made up" in page, "a run is missing")
        if not CHROMIUM:
            print("SKIPPED: no Chromium to look at the page with (apt-get install chromium)")
            return
        real = look(scratch, page, dark=False)
        expect(not real["faults"], "the page's script: %s" % real["faults"])
        wanted = ["of the test", "latency", "bandwidth", "made up", "latency", "bandwidth", "allreduce"]
        expect(real["headings"] == wanted, "the headings are %s" % real["headings"])
        expect(len(real["charts"]) == 11 and real["cells"] > 100, "%d charts" % len(real["charts"]))
        only = re.sub(r'(id="runs">).*?</script>', lambda found: found.group(1) + "[" + made.read_text() + "]</script>",
                      page, flags=re.S)
        for dark, background in ((False, "rgb(255, 255, 255)"), (True, "rgb(22, 24, 27)")):
            looked = look(scratch, only, dark)
            expect((looked["dark"], looked["background"]) == (dark, background), "the colours are %s" % looked)
            check_drawn(looked)
        print("every series is drawn, by day and in the dark")


main()
