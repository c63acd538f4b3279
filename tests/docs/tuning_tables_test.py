#!/usr/bin/env python3
"""tuning_tables_test: the tables of tuned numbers are current; the command sees old ones, and wrong headers.

usage: tuning_tables_test.py WORKSPACE
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent

HEADER = """\
// tuning.h: numbers.
// == docs/lanes.md: times and sizes

// How long a look
// takes. [ns]
inline constexpr int64_t kLookNs = 200 * kMillisecond;
// This is lame. [part of the median; paths.sh: 0.83 with a fifth,
// 0.93 with this]
inline constexpr double kLame = 0.05;
// Read at once. [bytes]
inline constexpr size_t kReadBytes = 256 << 10;

// == docs/healing.md: dials

// Sockets. [sockets]
inline constexpr int kDials = 1'024;
"""

TABLE = """\
# Lanes

Text.

## Tuned numbers
"""

ROWS = [
    "### Times and sizes",
    "From `net_socket/pilot/tuning.h`:",
    "| `kLookNs` | 200 ms | How long a look takes | none |",
    "| `kLame` | 0.05 of the median | This is lame | paths.sh: 0.83 with a fifth, 0.93 with this |",
    "| `kReadBytes` | 256 KiB | Read at once | none |",
]


class TuningTablesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tools", "docs", "net_socket/pilot", "net_socket/nic"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools/tuning_tables", self.root / "tools")
        self.write("docs/lanes.md", "# Lanes\n\nText.\n")
        self.write("docs/healing.md", "# Healing\n")
        self.write("net_socket/pilot/tuning.h", HEADER)

    def write(self, path, text):
        (self.root / path).write_text(text, encoding="utf-8")

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def run_it(self, *arguments):
        return subprocess.run([self.root / "tools/tuning_tables", *arguments], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_the_pages_are_current(self):
        done = subprocess.run([ROOT / "tools/tuning_tables", "--check"], check=False, text=True, stderr=subprocess.PIPE)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_it_writes_what_it_then_finds_current(self):
        self.assertEqual(1, self.run_it("--check").returncode)
        self.assertEqual("# Lanes\n\nText.\n", self.read("docs/lanes.md"), "--check writes nothing")
        self.assertEqual(0, self.run_it().returncode)
        page = self.read("docs/lanes.md")
        self.assertTrue(page.startswith(TABLE), page)
        for row in ROWS:
            self.assertIn("\n" + row + "\n", page)
        self.assertIn("| `kDials` | 1024 sockets | Sockets | none |", self.read("docs/healing.md"))
        self.assertEqual(0, self.run_it("--check").returncode)

    def test_another_number_is_seen(self):
        self.run_it()
        self.write("net_socket/pilot/tuning.h", HEADER.replace("200 *", "300 *"))
        done = self.run_it("--check")
        self.assertEqual(1, done.returncode)
        self.assertEqual("tuning_tables: docs/lanes.md is not current: run tools/tuning_tables\n", done.stderr)
        self.run_it()
        self.assertIn("| `kLookNs` | 300 ms |", self.read("docs/lanes.md"))
        self.assertEqual(1, self.read("docs/lanes.md").count("## Tuned numbers"))

    def test_what_is_wrong_in_a_header(self):
        for old, new, says in (
            (" [ns]", "", "kLookNs needs a comment that ends with [unit]"),
            ("// How long a look\n// takes. [ns]\n", "", "kLookNs needs a comment"),
            ("// == docs/lanes.md: times and sizes\n", "", "kLookNs is in no table"),
            ("docs/lanes.md", "docs/none.md", "no page docs/none.md"),
            ("0.05;", "Other();", "'Other()' is no number"),
            ("kLame = 0.05;", "kLame = 0.05, kOther = 1;", "no number"),
        ):
            with self.subTest(says):
                self.write("net_socket/pilot/tuning.h", HEADER.replace(old, new))
                done = self.run_it()
                self.assertEqual(1, done.returncode)
                self.assertIn(says, done.stderr)

    def test_a_name_occurs_once(self):
        self.write("net_socket/nic/tuning.h", HEADER)
        done = self.run_it()
        self.assertEqual(1, done.returncode)
        self.assertIn("has a number of that name", done.stderr)


if __name__ == "__main__":
    unittest.main()
