#!/usr/bin/env python3
"""tools/tcpx_top among several users: root sees the processes of all, everybody else his own.

usage: users_test.py TCPX_TOP NET_BENCH PLUGIN

Ranks of net_bench run as root and as another user, each with TCPX_STATS_SOCKET=auto; tcpx_top asks as root, as that
user and as a third one. Only root outside of a sandbox can become others: elsewhere it is skipped, with a line that
says so.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOP, BENCH, PLUGIN = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
ROOT, USER, STRANGER = 0, 65534, 65533
SECONDS = 60 * int(os.environ.get("TCPX_TEST_TIME_SCALE", "1"))


def as_user(uid):
    """Arguments of Popen for a user who need not exist."""
    return {"user": uid, "group": uid, "extra_groups": []} if uid != ROOT else {}


def find_python():
    """One that another user may start, and why there is none."""
    if os.geteuid() != 0:
        return None, "only root can become another user"
    why = ""
    for path in (sys.executable, "/usr/bin/python3"):
        try:
            run = subprocess.run([path, "-S", "-c", ""], capture_output=True, text=True, check=False, cwd="/",
                                 **as_user(USER))
            if run.returncode == 0:
                return path, ""
            why = run.stderr
        except (OSError, subprocess.SubprocessError) as error:
            why = str(error)
    return None, "root can't start Python as another user here: " + why


PYTHON, WHY_NOT = find_python()


@unittest.skipIf(WHY_NOT, "SKIPPED: " + WHY_NOT)
class UsersTest(unittest.TestCase):
    def setUp(self):
        # Others have to get at what lies in it.
        self.folder = tempfile.mkdtemp(dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.top, self.bench, self.plugin = (shutil.copy(path, self.folder) for path in (TOP, BENCH, PLUGIN))
        for path in (self.top, self.bench, self.plugin):
            os.chmod(path, 0o755)

    def start_ranks(self, uid):
        """Two ranks that stay until the end of the test; the names of their sockets."""
        ranks = subprocess.Popen(
            [self.bench, "--plugin", self.plugin, "--mode", "idle", "--conns", "2", "--seconds", "3600",
             "--no-priority", "--no-pin", "--phase", "any"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.folder,
            env={"NCCL_SOCKET_IFNAME": "lo", "TCPX_STATS_SOCKET": "auto",
                 "PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            **as_user(uid))
        self.addCleanup(self.end, ranks)
        return self.await_sockets(ranks, uid)

    @staticmethod
    def end(ranks):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ranks.pid, signal.SIGKILL)
        ranks.wait(SECONDS)

    def await_sockets(self, ranks, uid):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            self.assertIsNone(ranks.poll(), "net_bench has ended")
            members = [pid for pid in os.listdir("/proc") if pid.isdigit() and self.in_group(int(pid), ranks.pid)]
            with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
                names = {line.split()[-1] for line in table if "@tcpx-%d-" % uid in line}
            found = {name for name in names if name.split("-")[2] in members}
            if len(found) == 2:
                return found
            time.sleep(0.05)
        self.fail("no sockets of user %d" % uid)

    @staticmethod
    def in_group(pid, group):
        with contextlib.suppress(OSError):
            return os.getpgid(pid) == group
        return False

    def ask(self, uid, *arguments):
        return subprocess.run([PYTHON, "-S", self.top, "--once", "--json", "--interval", "0.1", *arguments],
                              capture_output=True,
                              text=True, check=False, timeout=5 * SECONDS, cwd=self.folder, **as_user(uid))

    def sockets_seen(self, uid, wanted=frozenset()):
        """Once all that are wanted have answered: a rank has rows once it has connections, and may be slow."""
        deadline = time.monotonic() + SECONDS
        while True:
            seen = {row["socket"] for row in json.loads(self.ask(uid).stdout)}
            if wanted <= seen or time.monotonic() > deadline:
                return seen

    def take_name(self, uid, name, like):
        """A name that says it is another user's, where somebody answers as the plugin does."""
        answer = os.path.join(self.folder, "answer")
        with socket.socket(socket.AF_UNIX) as client, open(answer, "wb") as file:
            client.settimeout(SECONDS)
            client.connect("\0" + like[1:])
            for part in iter(lambda: client.recv(1 << 16), b""):
                file.write(part)
        code = ("import contextlib, socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0%s'); s.listen(99); print(1, flush=1)\n"
                "while True:\n"
                "  with contextlib.suppress(OSError): s.accept()[0].sendall(open('%s', 'rb').read())"
                % (name[1:], answer))
        thief = subprocess.Popen([PYTHON, "-S", "-c", code], stdout=subprocess.PIPE, text=True, cwd="/", **as_user(uid))
        self.addCleanup(thief.stdout.close)
        self.addCleanup(thief.wait)
        self.addCleanup(thief.kill)
        self.assertEqual("1\n", thief.stdout.readline())

    def test_root_sees_all_and_others_their_own(self):
        stolen = "@tcpx-%d-999999999-%d" % (USER, time.monotonic_ns())
        roots, users = self.start_ranks(ROOT), self.start_ranks(USER)
        self.take_name(STRANGER, stolen, min(roots))
        seen = self.sockets_seen(ROOT, roots | users)
        self.assertLessEqual(roots | users, seen)
        self.assertNotIn(stolen, seen)
        seen = self.sockets_seen(USER, users)
        self.assertLessEqual(users, seen)
        self.assertFalse([name for name in seen if not name.startswith("@tcpx-%d-" % USER)])
        self.assertNotIn(stolen, seen)
        self.assertEqual(set(), self.sockets_seen(STRANGER))
        # A user who knows a name gets no answer either.
        for uid, name in ((USER, min(roots)), (STRANGER, min(users))):
            run = self.ask(uid, "--socket", name)
            self.assertEqual((1, []), (run.returncode, json.loads(run.stdout)))
            self.assertIn("no process has answered", run.stderr)


if __name__ == "__main__":
    unittest.main()
