#!/usr/bin/env python3
"""tools/tcpx_top: what it makes of two looks, for scripts and on a terminal.

usage: tcpx_top_test.py TCPX_TOP
"""

import contextlib
import copy
import importlib.machinery
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import unittest
import unittest.mock

TOP = os.path.abspath(sys.argv.pop(1))


def load_top():
    loader = importlib.machinery.SourceFileLoader("tcpx_top", TOP)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tcpx_top", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


top = load_top()


def kind(messages, size, bucket):
    return {"messages": messages, "bytes": messages * size, "durations_ns": [[bucket, messages]] if messages else [],
            "sizes": [], "p50_ns": 0, "p99_ns": 0}


def lane(i, moved, busy_us, **more):
    return {"local": "10.0.0.1:%d" % (1000 + i), "peer": "10.0.0.2:7", "lost": False, "bytes": moved, "chunks": 1,
            "retransmits": 0, "rtt_us": 100 + i, "rtt_min_us": 90, "busy_us": busy_us, "window_limited_us": 0,
            "unacked_bytes": 0, "congestion": "cubic", "dscp": 0, **more}


def snapshot(seconds):
    """The snapshot of a process that sends 1000 bulk messages of 1 MB a second; its last lane is slow."""
    blocked = {"network.path": int(seconds * 6e8), "peer.window_closed": int(seconds * 3e8),
               "peer.nothing_sent": 0, "peer.receive_not_posted": 0, "nccl.not_tested": 0,
               "nccl.nothing_to_do": int(seconds * 1e8), "here.no_cpu": 0}
    lanes = [lane(0, 0, 0)] + [lane(i, int(seconds * 1e9), int(seconds * 1e6)) for i in (1, 2, 3)]
    lanes.append(lane(4, int(seconds * 1e8), int(seconds * 1e6)))
    connection = {"connection": "c0ffee", "communicator": "0xabc", "direction": "send", "device": 0,
                  "interfaces": "eth0", "peer": "10.0.0.2", "failed": False, "posted": 8, "lanes_lost": 0,
                  "express": kind(0, 1, 1), "bulk": kind(int(1000 * seconds), 1000000, 1 << 20),
                  "blocked_ns": blocked, "lanes": lanes}
    return {"tcpx_snapshot": 1, "process": {"host": "node1", "pid": 4711, "uid": os.geteuid()},
            "now_ns": int((100 + seconds) * 1e9), "connections": [connection]}


class Server:
    """Answers like the plugin; each look is a second later."""

    def __init__(self, looks_every=1, waits_for=None):
        self.looks_every = looks_every  # so many questions are answered with the same look
        self.waits_for = waits_for  # another one that has to be asked before this one answers
        self.name = "@tcpx-top-test-%d-%d" % (os.getpid(), time.monotonic_ns())
        self.looks = 0
        self.verdict = None
        self.format = 1
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind("\0" + self.name[1:])
        self.listening.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            self.looks += 1
            while self.waits_for and not self.waits_for.looks:
                time.sleep(0.01)
            look = snapshot(self.looks // self.looks_every)
            look["tcpx_snapshot"] = self.format
            if self.verdict:
                look["connections"][0]["verdict"] = self.verdict
            with client, contextlib.suppress(OSError):
                client.sendall(json.dumps(look).encode())


class RowsTest(unittest.TestCase):
    def rows(self, before, now):
        key = "@tcpx-0-4711"
        return top.rows_between({key: before} if before else {}, {key: now})

    def test_rates_are_of_the_time_between(self):
        (row,) = self.rows(snapshot(1), snapshot(3))
        self.assertAlmostEqual(1e9, row["rate"])
        self.assertAlmostEqual(1000, row["messages"])
        self.assertEqual(1 << 20, row["p99_ns"])
        self.assertAlmostEqual(0.6, row["blocked"]["network"])
        self.assertAlmostEqual(0.3, row["blocked"]["peer"])
        self.assertEqual(1, row["lanes_slow"])
        self.assertEqual([False, False, False, False, True], [lane["slow"] for lane in row["lanes"]])

    def test_lanes_come_and_go(self):
        before, now = snapshot(1), snapshot(3)
        numbered = lambda look: [lane.update(lane=i, open=i != 3)
                                 for i, lane in enumerate(look["connections"][0]["lanes"])]
        numbered(before), numbered(now)
        before["connections"][0]["lanes"][2:3] = []  # It was opened since.
        now["connections"][0].update(lanes_added=5, lanes_dropped=4, lanes_redialled=3)
        (row,) = self.rows(before, now)
        self.assertEqual((4, 5, 1), (row["lanes_open"], len(row["lanes"]), row["lanes_slow"]))
        self.assertAlmostEqual(1e9, row["lanes"][1]["rate"])
        page = "\n".join(top.page_lines(row))
        self.assertIn("lanes: 5 added, 4 dropped, 0 lost, 3 redialled", page)
        self.assertIn("cubic closed", page)
        self.assertRegex(top.row_text(row), r"^[NP.C ]{10} .* 4! send")

    def test_what_is_new_has_no_rate_yet(self):
        (row,) = self.rows(None, snapshot(3))
        self.assertEqual((None, None), (row["rate"], row["p99_ns"]))
        self.assertEqual(len(top.HEAD), len(top.row_text(row)))
        self.assertIn("-", " ".join(top.page_lines(row)))

    def test_what_stands_has_no_rate(self):
        later = snapshot(1)
        later["now_ns"] += 10**9
        (row,) = self.rows(snapshot(1), later)
        self.assertEqual(0, row["rate"])
        self.assertEqual(0, sum(row["blocked"].values()))

    def test_processes_of_one_host_and_pid_are_two(self):
        names = ("@tcpx-0-7-4026532001", "@tcpx-0-7-4026532002")
        rows = top.rows_between(dict.fromkeys(names, snapshot(1)), dict.fromkeys(names, snapshot(3)))
        self.assertEqual(2, len({top.View.identity(row) for row in rows}))

    def test_nonsense_of_one_does_not_hide_others(self):
        bad = []
        for path, value in ((("process",), []), (("connections",), [7]), (("now_ns",), "x"), (("connections",), None),
                            (("process", "pid"), "x"), (("process", "host"), {}), (("connections", 0, "posted"), "x"),
                            (("connections", 0, "lanes"), {}), (("connections", 0, "lanes", 1, "bytes"), float("inf")),
                            (("connections", 0, "bulk", "bytes"), float("nan")), (("connections", 0, "bulk"), []),
                            (("connections", 0, "blocked_ns"), {"x.y": 1})):
            wrong = snapshot(3)
            at = wrong
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = value
            bad.append(wrong)
        for wrong in bad:
            for before in (snapshot(1), wrong):
                rows = top.rows_between({"a": before, "b": snapshot(1)}, {"a": wrong, "b": snapshot(3)})
                self.assertIn("b", [row["socket"] for row in top.arranged(rows, "rate", "")])
                [top.row_text(row) for row in rows]

    def test_an_answer_takes_no_more_memory_than_it_may(self):
        good = json.dumps(snapshot(3))
        more = lambda extra: (good[:-1] + ', "more": ' + extra + "}").encode()
        lists = more("[" + "[]," * (5 << 20) + "[]]")
        text = more('"' + "x" * (8 << 20) + '"')
        crowd = json.dumps({**snapshot(3), "connections": [{}] * (top.LIST_MAX + 1)}).encode()
        for answer, peak_bytes, known in ((lists, 1 << 20, False), (text, 64 << 20, True), (crowd, 64 << 20, False)):
            tracemalloc.start()
            taken = top.snapshot_of("a", answer)
            left, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            self.assertEqual(known, taken is not None)
            self.assertLess(peak, peak_bytes)
            self.assertLess(left, 1 << 20)

    def test_a_process_that_has_not_looked_keeps_its_rows(self):
        view = top.View(type("Options", (), {"sort": "rate", "filter": "", "group": "connection"}))
        view.take({"a": snapshot(1)})
        view.take({"a": snapshot(3)})
        view.take({"a": snapshot(3), "b": snapshot(1)})
        self.assertEqual([1e9, None], [row["rate"] for row in view.rows])
        view.take({})
        self.assertEqual([], view.rows)

    def test_names_are_no_commands_for_the_terminal(self):
        self.assertEqual("a?[2Jb??", top.printable("a\x1b[2Jb\0\u202e"))

    def test_rows_are_sorted_and_filtered(self):
        first, second = self.rows(snapshot(1), snapshot(3))[0], self.rows(snapshot(1), snapshot(5))[0]
        second = {**copy.deepcopy(second), "rate": 5e9, "peer": "10.0.0.9"}
        self.assertEqual([second, first], top.arranged([first, second], "rate", ""))
        self.assertEqual([first], top.arranged([first, second], "p99", "10.0.0.2"))

    def test_every_column_stays_in_its_place(self):
        (row,) = self.rows(snapshot(1), snapshot(3))
        self.assertEqual(len(top.HEAD), len(top.row_text(row)))
        self.assertEqual("NNNNNNNNNNNNPPPPPP..", top.bar(row["blocked"]))

    def test_what_tells_most_is_within_80_columns(self):
        (row,) = self.rows(snapshot(1), snapshot(3))
        shown = top.row_text(row)[:79]
        for text in ("NNNNNNPPP.", "1.00 GB/s", "1049 us", " 5! ", "10.0.0.2", "4711"):
            self.assertIn(text, shown)
        for name in ("waits_for", "rate", "p99", "lanes", "peer", "pid", "history"):
            self.assertIn(name, top.HEAD[:79])
        self.assertLess(len(top.LEGEND + "  ? help"), 80)
        self.assertLess(max(map(len, top.HELP.splitlines())), 80)

    def test_totals_are_for_each_peer_or_process(self):
        rows = []
        for socket_name, peer in (("@a", "10.0.0.2"), ("@a", "10.0.0.3"), ("@b", "10.0.0.2")):
            (row,) = self.rows(snapshot(1), snapshot(3))
            rows.append({**row, "socket": socket_name, "peer": peer, "history": [1, 2]})
        self.assertEqual(rows, top.grouped(rows, "connection"))
        by_peer = {row["peer"]: row for row in top.grouped(rows, "peer")}
        self.assertAlmostEqual(2e9, by_peer["10.0.0.2"]["rate"])
        self.assertEqual((10, 2, [2, 4]),
                         tuple(by_peer["10.0.0.2"][key] for key in ("lanes_open", "lanes_slow", "history")))
        self.assertEqual("2 connections", by_peer["10.0.0.2"]["communicator"])
        by_process = top.grouped(rows, "process")
        self.assertEqual(["2", "10.0.0.2"], [row["peer"] for row in by_process])
        for row in top.arranged(by_process, "network", ""):
            self.assertEqual(len(top.HEAD), len(top.row_text(row)))

    def test_the_history_is_of_the_latest_looks(self):
        view = top.View(type("Options", (), {"sort": "rate", "filter": "", "group": "connection"}))
        for second in range(1, 13):
            view.take({"a": snapshot(second)})
        self.assertEqual([1e9] * top.HISTORY, view.rows[0]["history"])
        self.assertEqual("   _.-+#", top.sparkline([0, 1, 3, 5, 8]))
        self.assertEqual(" " * 8, top.sparkline([]))


class CommandTest(unittest.TestCase):
    def run_top(self, *arguments):
        return subprocess.run([sys.executable, TOP, *arguments], capture_output=True, text=True, timeout=60)

    def test_once_json(self):
        server = Server()
        run = self.run_top("--once", "--json", "--interval", "0.1", "--socket", server.name)
        self.assertEqual(0, run.returncode, run.stderr)
        (row,) = json.loads(run.stdout)
        self.assertAlmostEqual(1e9, row["rate"])
        self.assertEqual("c0ffee", row["connection"])

    def test_once_waits_for_a_look(self):
        run = self.run_top("--once", "--json", "--interval", "0.1", "--socket", Server(looks_every=4).name)
        self.assertEqual(0, run.returncode, run.stderr)
        (row,) = json.loads(run.stdout)
        self.assertAlmostEqual(1e9, row["rate"])

    def test_once_table(self):
        run = self.run_top("--once", "--interval", "0.1", "--socket", Server().name)
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertIn("1.00 GB/s", run.stdout)
        self.assertEqual([top.LEGEND, top.HEAD.rstrip()], run.stdout.splitlines()[:2])

    def test_once_fits_the_terminal(self):
        with unittest.mock.patch.dict(os.environ, COLUMNS="80"):
            lines = self.run_top("--once", "--interval", "0.1", "--socket", Server().name).stdout.splitlines()
        self.assertIn("1.00 GB/s", lines[2])
        self.assertEqual(lines, [line[:80] for line in lines])

    def test_why(self):
        server = Server()
        run = self.run_top("--why", "--socket", server.name)
        self.assertEqual((0, "nothing is stalled\n"), (run.returncode, run.stdout), run.stderr)
        server.verdict = {"cause": "peer-late", "culprit": "node2 pid 5", "text": "a waits for node2 pid 5: late"}
        run = self.run_top("--why", "--socket", server.name)
        self.assertEqual("comm 0xabc: a waits for node2 pid 5: late\nculprit: node2 pid 5 (peer-late)\n", run.stdout)
        (found,) = json.loads(self.run_top("--why", "--json", "--socket", server.name).stdout)
        self.assertEqual("peer-late", found["cause"])
        server.verdict = "nonsense"
        self.assertEqual("nothing is stalled\n", self.run_top("--why", "--socket", server.name).stdout)
        run = self.run_top("--why", "--socket", "@tcpx-nobody-%d" % time.monotonic_ns())
        self.assertEqual(1, run.returncode)

    def test_nobody_there(self):
        run = self.run_top("--once", "--interval", "0.1", "--socket", "@tcpx-nobody-%d" % time.monotonic_ns())
        self.assertEqual(1, run.returncode)
        self.assertIn("no process has answered", run.stderr)

    def test_all_are_asked_at_once(self):
        last = Server()
        first = Server(waits_for=last)
        self.assertEqual({first.name, last.name}, set(top.ask_all([first.name, last.name])))

    # The kernel takes questions for them for a while, until their queues are full.
    def test_stopped_processes_are_told_of(self):
        stopped = []
        for i in range(5):
            stopped.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            self.addCleanup(stopped[-1].close)
            stopped[-1].bind("\0tcpx-top-stopped-%d-%d" % (os.getpid(), time.monotonic_ns()))
            stopped[-1].listen(i)
        silent = ["@" + one.getsockname()[1:].decode() for one in stopped]
        names = [word for name in silent + [Server().name] for word in ("--socket", name)]
        run = self.run_top("--why", "--json", *names)
        self.assertEqual((0, "[]\n"), (run.returncode, run.stdout), run.stderr)
        for name in silent:
            self.assertEqual(1, run.stderr.count(name + " does not answer: its process is likely stopped"), run.stderr)
        # None answers: that they have no statistics would be wrong.
        run = self.run_top("--why", *names[:-2])
        self.assertEqual(1, run.returncode)
        self.assertNotIn("TCPX_STATS_SOCKET", run.stderr)

    def test_a_plugin_of_another_version_is_told_of(self):
        server = Server()
        server.format = 2
        run = self.run_top("--once", "--interval", "0.1", "--socket", server.name)
        self.assertEqual(1, run.returncode)
        self.assertEqual(1, run.stderr.count("answers in format 2, and this tcpx_top knows 1"), run.stderr)
        self.assertNotIn("no process has answered", run.stderr)

    def test_wrong_use(self):
        self.assertEqual(2, self.run_top("--json").returncode)
        self.assertEqual(2, self.run_top("--sort", "colour").returncode)

    def test_without_a_terminal_it_says_so(self):
        run = self.run_top()
        self.assertEqual((2, ""), (run.returncode, run.stdout))
        self.assertEqual("tcpx_top: this is no terminal: use --once for a table, --once --json for scripts, or --why\n",
                         run.stderr)

    def test_version(self):
        self.assertEqual((0, "tcpx_top (from the sources)\n"),
                         (lambda run: (run.returncode, run.stdout))(self.run_top("--version")))

    def test_once_with_totals(self):
        run = self.run_top("--once", "--interval", "0.1", "--group", "peer", "--socket", Server().name)
        self.assertIn("1 connection\n", run.stdout, run.stderr)

    def test_answers_that_are_none(self):
        name = "@tcpx-top-garbage-%d" % time.monotonic_ns()
        garbage = (b"no json", b'{"tcpx_snapshot":99}', b"", b"[]", b"7", b"\xff", b"[" * 100000,
                   b'{"tcpx_snapshot":1}', b'{"tcpx_snapshot":1,"now_ns":"x"}')
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind("\0" + name[1:])
        listening.listen(8)

        def serve():
            for text in garbage:
                client, _ = listening.accept()
                with client:
                    client.sendall(text)

        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(listening.close)
        for _ in garbage:
            self.assertEqual({}, top.ask_all([name]))

    def test_answers_that_are_too_long(self):
        good = json.dumps(snapshot(3)).encode()
        for blanks, known in ((top.ANSWER_MAX - len(good), True), (top.ANSWER_MAX - len(good) + 1, False)):
            name = "@tcpx-top-long-%d" % time.monotonic_ns()
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind("\0" + name[1:])
            listening.listen(8)

            def serve():
                client, _ = listening.accept()
                with client, contextlib.suppress(OSError):
                    client.sendall(good + b" " * blanks)

            threading.Thread(target=serve, daemon=True).start()
            self.addCleanup(listening.close)
            self.assertEqual(known, name in top.ask_all([name]), blanks)

    def test_an_answer_that_never_ends(self):
        name = "@tcpx-top-endless-%d" % time.monotonic_ns()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind("\0" + name[1:])
        listening.listen(8)
        gone = threading.Event()

        def serve():
            client, _ = listening.accept()
            with client, contextlib.suppress(OSError):
                while not gone.wait(0.1):
                    client.sendall(b" ")
            gone.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(listening.close)
        self.assertEqual({}, top.ask_all([name]))
        thread.join(60)  # It writes until nobody listens.
        self.assertFalse(thread.is_alive())


@unittest.skipUnless(shutil.which("tmux"), "SKIPPED: tmux is missing: apt-get install tmux")
class TerminalTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.folder = tempfile.mkdtemp()
        self.environment = dict(os.environ, TMUX_TMPDIR=self.folder, TERM="xterm", LC_ALL="C.UTF-8")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "170", "-y", "24",
                  "%s %s --interval 0.2 --socket %s; echo ended; sleep 600" % (sys.executable, TOP, self.server.name))

    def tearDown(self):
        self.tmux("kill-server")
        shutil.rmtree(self.folder, ignore_errors=True)

    def tmux(self, *arguments):
        run = subprocess.run(["tmux", *arguments], capture_output=True, text=True, env=self.environment, timeout=60)
        self.assertEqual(0, run.returncode, run.stderr)
        return run.stdout

    def await_text(self, text):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            screen = self.tmux("capture-pane", "-p")
            if text in screen:
                return screen
            time.sleep(0.05)
        self.fail("no %r on:\n%s" % (text, screen))

    def test_help_and_totals(self):
        self.await_text("N network")
        self.tmux("send-keys", "?")
        began = self.await_text("totals: for each connection, peer or process").split()[1]
        while began in (screen := self.tmux("capture-pane", "-p")):
            time.sleep(0.05)
        self.assertIn("totals: for each", screen)  # It stays until a key is pressed.
        self.tmux("send-keys", "x")
        self.await_text("GB/s")
        self.tmux("send-keys", "g")
        self.await_text("1 peer, by rate")
        self.tmux("send-keys", "g")
        self.await_text("1 process, by rate")

    def test_80_columns_show_what_each_waits_for(self):
        self.tmux("resize-window", "-x", "80")
        screen = self.await_text("GB/s")
        self.assertIn("history", screen)
        self.assertRegex(screen, r"(?m)^[NPC.]{10} +1\.00 GB/s")

    def test_list_page_and_end(self):
        screen = self.await_text("GB/s")
        self.assertIn("10.0.0.2", screen)
        self.tmux("send-keys", "p")
        self.await_text("by p99")
        self.tmux("send-keys", "Enter")
        self.assertIn("10.0.0.1:1004", self.await_text("connection c0ffee"))
        self.tmux("send-keys", "BSpace")
        self.await_text("msg/s")
        self.tmux("send-keys", "/", "x", "y", "Enter")
        self.await_text("0 connections")
        self.tmux("send-keys", "q")
        self.await_text("ended")

    def test_a_process_that_ends_is_gone(self):
        self.await_text("GB/s")
        self.server.listening.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
            try:
                last.connect("\0" + self.server.name[1:])  # Wakes the accept that still holds the socket.
            except OSError:
                pass
        self.await_text("0 connections")


if __name__ == "__main__":
    unittest.main()
