#!/usr/bin/env python3
"""commands_test: every command has --help and exit codes, names wrong use in one line, and needs no root without need.

usage: commands_test.py WORKSPACE BUILT...

BUILT are the programs. A command that is on no list here, in tools/ or among them, fails the test.
"""

import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent
BUILT = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[1:]}
del sys.argv[1:]

# What is wrong with these arguments, in the command's own words. None: it takes no such arguments.
WRONG = {
    "tools/bench": {},  # builds before it hands its arguments on
    "tools/check_format": {"--bogus": "unknown option --bogus", "--report": "--report needs a file"},
    "tools/compile_commands": {"--bogus": "--config=NAME or nothing, not '--bogus'", "a b": "not 'a b'"},
    "tools/fuzz": {"--bogus": "unknown option --bogus", "--minutes x": "--minutes needs a number",
                   "x": "no fuzz target x"},
    "tools/gpu": {"--bogus": "unknown option --bogus"},
    "tools/install": {"--bogus": "unknown option --bogus", "": "one DIR", "a b": "one DIR", "--uninstall": "one DIR"},
    "tools/package": {"--bogus": "unknown option --bogus", "": "usage:", "--arch m68k d": "--arch needs",
                      "--url": "--url needs a value", "a b": "one DIR only"},
    "tools/setup": {"--bogus": "unknown option --bogus"},
    "tools/site": {"--bogus": "unknown option --bogus", "": "one DIR", "a b": "one DIR"},
    "tools/soak": {"--bogus": "unknown option --bogus", "": "usage:", "--minutes x": "usage:"},
    "tools/sweep": {"--bogus": "unrecognized arguments: --bogus", "--rounds x": "invalid int value",
                    "--host": "expected one"},
    "tools/tcpx_top": {"--bogus": "unrecognized arguments", "--interval x": "invalid float",
                       "--json": "--json goes with --once"},
    "tools/test": {"--bogus": "unknown option --bogus", "--config x": "--config needs"},
    "tools/trace_merge": {"--bogus": "trace.json", "": "required: trace.json",
                          "--offset x t": "x is not HOST=MICROSECONDS"},
    "tools/tuning_tables": {"--bogus": "unrecognized arguments: --bogus"},
    "deploy/packaging/scripts/tcpx_default": {"--bogus": "on, off or status", "": "on, off or status"},
    "deploy/install.sh": {"--bogus": "unknown option --bogus", "": "usage:"},
    "net_bench": {"--bogus": "unknown option '--bogus'", "": "give a plugin", "--plugin": "--plugin needs a value"},
    "rma_bench": {"--bogus": "unknown option '--bogus'", "": "give a library", "--library": "--library needs a value"},
    "tcpx_doctor": {"--bogus": "unknown option '--bogus'", "--ranks x": "--ranks", "hosts": "hosts",
                    "plan": "plan needs --hosts"},
    "wire": {"--bogus": "unknown option --bogus", "": "two ends or more", "--seed": "--seed needs a value"},
}
for script in ("fused", "heal", "lossy", "paths", "qos", "shaped", "wired"):
    WRONG["bench/netns/%s.sh" % script] = {"--bogus": "unknown option --bogus",
                                           "--net-bench": "--net-bench needs a value"}
WRONG["bench/netns/heal.sh"] = {"--bogus": "unknown option --bogus", "--seconds": "--seconds needs a value"}
# Parts of commands, and what is no command: lists, and what tools/gpu and tools/test run.
PARTS = {"common.sh", "count_tests.py", "gpu_cases.sh", "gpu_torch.py", "test_times.py"}


def talked_to(arguments, **more):
    """Runs a command with nothing to read."""
    pipe = subprocess.PIPE
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, **more)


def path_of(command):
    """Where a command lies."""
    return BUILT[command] if command in BUILT else str(ROOT / command)


def run(command, *arguments, **more):
    """Output, errors, exit code. Nothing is asked, and nothing is waited for."""
    arguments = [path_of(command), *arguments]
    if command.endswith(".sh"):
        arguments.insert(0, "bash")
    return talked_to(arguments, **more)


class CommandsTest(unittest.TestCase):
    def test_none_is_left_out(self):
        tools = {"tools/" + path.name for path in (ROOT / "tools").iterdir() if path.is_file()
                 and path.name not in PARTS}
        self.assertEqual(tools, {command for command in WRONG if command.startswith("tools/")})
        packed = (ROOT / "deploy/packaging/files.txt").read_text().split()
        programs = {pathlib.PurePath(word).name for word in packed if word.startswith("{bin}/")}
        self.assertLessEqual(programs - {"tcpx_trace_merge"}, {pathlib.PurePath(command).name for command in WRONG})

    def test_help(self):
        for command in WRONG:
            for option in ("--help", "-h"):
                with self.subTest(command=command, option=option):
                    done = run(command, option)
                    self.assertEqual((0, ""), (done.returncode, done.stderr))
                    self.assertIn("usage: ", done.stdout)
                    self.assertRegex(done.stdout, "exit codes?: 0 ")

    def test_version(self):
        default = "deploy/packaging/scripts/tcpx_default"
        for command in ("net_bench", "rma_bench", "tcpx_doctor", "tools/tcpx_top", "tools/trace_merge",
                        "deploy/install.sh", default):
            with self.subTest(command=command):
                done = run(command, "--version")
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                self.assertRegex(done.stdout,
                                 r"^%s (\d+\.\d+, build id \w+|\(from the sources\))\n$" % command.split("/")[-1])
        # Nothing is built for the answer.
        for command in ("tools/bench", "tools/install", "tools/package"):
            with self.subTest(command=command):
                done = run(command, "--version", env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}, timeout=60)
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                self.assertRegex(done.stdout, r"^%s \d+\.\d+ \(from the sources\)\n$" % command)

    def test_completion_knows_the_options_of_help(self):
        script = 'source "$1"; COMP_WORDS=("$2" --); COMP_CWORD=1; _tcpx "$2"; printf "%s\\n" "${COMPREPLY[@]}"'
        completion = str(ROOT / "deploy/completion/tcpx.bash")
        default = "deploy/packaging/scripts/tcpx_default"
        wanted = {"tcpx_doctor": {"--parameters", "--hosts", "--at-once", "--help"},
                  "tools/tcpx_top": {"--group", "--once", "--help"},
                  "net_bench": {"--raw", "--listen", "--json", "--help"},
                  "tools/trace_merge": {"--offset", "--help"}, default: {"--version"}}
        # In a text there are options of other commands, too.
        others = {"tcpx_doctor": {"--overlap", "--ntasks", "--nodelist"}, "net_bench": {"--flows-shaped", "--links"}}
        for command, options in wanted.items():
            done = talked_to(["bash", "-c", script, "bash", completion, path_of(command)])
            self.assertLessEqual(options, set(done.stdout.split()), command)
            self.assertFalse(others.get(command, set()) & set(done.stdout.split()), command)

    def test_help_of_what_is_installed_has_its_name_and_80_columns(self):
        with tempfile.TemporaryDirectory() as folder:
            for command, name in (("tools/tcpx_top", "tcpx_top"), ("tools/trace_merge", "tcpx_trace_merge")):
                copy = shutil.copy(path_of(command), pathlib.Path(folder) / name)
                self.assertIn("usage: %s [" % name, talked_to([copy, "--help"]).stdout)
        for command in ("net_bench", "rma_bench", "tcpx_doctor", "tools/tcpx_top", "tools/trace_merge", "tools/install",
                        "tools/package"):
            self.assertEqual([], [line for line in run(command, "--help").stdout.splitlines() if len(line) > 80],
                             command)

    def test_what_was_installed_is_removed(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "tcpx"
            (folder / "bin").mkdir(parents=True)
            for path in ("libnccl-net-tcpx.so", "bin/tcpx_top", "bin/mine"):
                (folder / path).write_text("")
            (folder / "libnccl-net.so").symlink_to("libnccl-net-tcpx.so")
            done = run("tools/install", "--uninstall", str(folder))
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(["bin", "mine"], sorted(path.name for path in folder.rglob("*")))

    def test_wrong_use(self):
        for command, cases in WRONG.items():
            for arguments, text in cases.items():
                with self.subTest(command=command, arguments=arguments):
                    done = run(command, *arguments.split())
                    self.assertEqual(2, done.returncode, done.stderr)
                    self.assertEqual("", done.stdout)
                    self.assertIn(text, done.stderr)
                    self.assertNotIn("Traceback", done.stderr)
                    self.assertNotIn("unbound variable", done.stderr)

    def test_what_is_not_there(self):
        cases = {
            "net_bench": (["--plugin", "/nowhere/x.so"], "/nowhere/x.so"),
            "rma_bench": (["--library", "/nowhere/x.so"], "/nowhere/x.so"),
            "tools/trace_merge": (["-o", "/nowhere/out", "/nowhere/trace.json"], "/nowhere/"),
            "tools/tcpx_top": (["--once", "--socket", "/nowhere/socket"], "no process has answered"),
            "tcpx_doctor": (["hosts", "/nowhere/hosts"], "/nowhere/hosts"),
        }
        for command, (arguments, text) in cases.items():
            with self.subTest(command=command):
                done = run(command, *arguments)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(text, done.stdout + done.stderr)
                self.assertNotIn("Traceback", done.stderr)


class PagesTest(unittest.TestCase):
    """What the pages tell people to type."""

    def test_options_on_the_pages_are_those_of_help(self):
        names = {command if command.startswith("tools/") else command.rpartition("/")[2]: command for command in WRONG}
        helps = {name: run(command, "--help").stdout for name, command in names.items()}
        helps.update(tcpx_top=helps["tools/tcpx_top"], tcpx_trace_merge=helps["tools/trace_merge"])
        helps["nccl_bench"] = (ROOT / "bench/nccl_bench/usage.cc").read_text()
        helps["wired.sh"] += helps["net_bench"]
        helps["tools/sweep"] += helps["net_bench"]
        seen = 0
        for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")]):
            for line in typed(page.read_text()):
                for name, options in used(line, helps):
                    for option in set(options) - {"--help"}:
                        seen += 1
                        self.assertRegex(helps[name], r"(?<![\w-])%s(?![\w-])" % option, "%s: %s" % (page.name, line))
        self.assertLess(60, seen)

    def test_scripts_on_the_pages_are_there(self):
        for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")]):
            for line in typed(page.read_text()):
                for path in re.findall(r"(?<![\w./-])((?:tools|bench/netns|deploy)/[\w./-]*\w)", line):
                    self.assertTrue((ROOT / path).exists(), "%s: %s: %s" % (page.name, path, line))


def typed(text):
    """Lines of a page's code, and what is between backticks."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.split("  #")[0].strip()
        else:
            yield from re.findall(r"`([^`]+)`", line)


def used(line, known):
    """Yields (command, its options) of a line; what follows "--" or a pipe is somebody else's."""
    for part in re.split(r"[|;]| && ", line):
        words = part.split(" -- ")[0].replace("'", " ").split()
        for at, word in enumerate(words):
            name = word if word in known else word.rpartition("/")[2]
            if name in known:
                yield name, re.findall(r"(?<!\S)(--[a-z][\w-]*)", " ".join(words[at + 1 :]))
                break


@unittest.skipUnless(os.geteuid() == 0, "already without root")
class WithoutRootTest(unittest.TestCase):
    """As the user nobody, from a folder that all may read."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)

    def run_as_nobody(self, command, *arguments):
        user = pwd.getpwnam("nobody")
        copy = shutil.copy(path_of(command), self.folder)
        os.chmod(copy, 0o755)
        nobody = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        return talked_to([copy, *arguments], cwd=self.folder, env={"PATH": os.environ["PATH"]}, **nobody)

    def test_net_bench(self):
        arguments = "--raw --mode latency -b 8 --samples 1 --sample-ms 1 --phase any --no-pin --yield --keep-disturbed --json"
        done = self.run_as_nobody("net_bench", *arguments.split())
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue(json.loads(done.stdout)["results"])

    def test_tcpx_doctor(self):
        plugin = shutil.copy(path_of("libnccl-net-tcpx.so"), self.folder)
        os.chmod(plugin, 0o755)
        done = self.run_as_nobody("tcpx_doctor", "--json", "--plugin", plugin)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertTrue(json.loads(done.stdout)["findings"])

    def test_tcpx_top(self):
        done = self.run_as_nobody("tools/tcpx_top", "--once")
        # 1: none was found; another test may have ranks of that user.
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
