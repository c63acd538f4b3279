#!/usr/bin/env python3
"""wheel_test: the wheel has the form that pip wants and installs into a fresh environment; its Python part and its
commands work there; what it may not hold is refused; conda's recipe installs the same files.

usage: wheel_test.py WORKSPACE PLUGIN

WORKSPACE leads to the sources; the current folder has what is packed, PLUGIN among it. Nothing is downloaded.
"""

import base64
import csv
import email
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile

import yaml

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent
PLUGIN = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "deploy/packaging"))
sys.dont_write_bytecode = True

import layout  # noqa: E402

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
TAG = "py3-none-manylinux_2_28_" + os.uname().machine
NAME = "nccl_net_tcpx-9.8"
EPOCH = 1700000000
VARIABLES = ("NCCL_NET_PLUGIN", "NCCL_NET", "NCCL_PROFILER_PLUGIN")
COMMANDS = ("net_bench", "rma_bench", "tcpx_doctor", "tcpx_top", "tcpx_trace_merge")
HAS_VENV = importlib.util.find_spec("ensurepip") is not None


def run(*command, **more):
    """Output, errors, exit code."""
    pipe = subprocess.PIPE
    words = [str(word) for word in command]
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, **more)


def expect_done(done):
    """The output of a command that has to succeed."""
    if done.returncode != 0:
        raise AssertionError("%s: exit code %d\n%s%s" % (done.args, done.returncode, done.stdout, done.stderr))
    return done.stdout


def environment(**more):
    """That of this process, without what would lead NCCL or pip elsewhere."""
    left_out = ("NCCL_", "PIP_", "PYTHON", "TCPX_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return dict(kept, PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1", **more)


def pack(out, built):
    """Packs the wheel of what is in the folder `built`."""
    command = [sys.executable, "-B", ROOT / "deploy/packaging/package.py", "--root", ROOT, "--built", built]
    command += ["--arch", ARCH, "--version", "9.8", "--epoch", EPOCH, "--commit", "c0ffee", "--out", out, "wheel"]
    return run(*command)


class Packed(unittest.TestCase):
    """The wheel is made once, and installed once, in a folder whose name a shell has to quote."""

    scratch = None

    @classmethod
    def setUpClass(cls):
        if Packed.scratch is None:
            Packed.scratch = tempfile.TemporaryDirectory()
            folder = pathlib.Path(Packed.scratch.name).resolve()
            Packed.folder, Packed.venv = folder, folder / "a user's folder"
            Packed.wheel = pathlib.Path(expect_done(pack(folder / "out", os.getcwd())).strip())


class FormTest(Packed):
    def setUp(self):
        self.archive = zipfile.ZipFile(self.wheel)
        self.addCleanup(self.archive.close)
        self.names = self.archive.namelist()

    def test_name_and_tag(self):
        self.assertEqual("%s-%s.whl" % (NAME, TAG), self.wheel.name)
        fields = email.message_from_bytes(self.archive.read(NAME + ".dist-info/WHEEL"))
        self.assertEqual(("1.0", "false"), (fields["Wheel-Version"], fields["Root-Is-Purelib"]))
        self.assertEqual([TAG], fields.get_all("Tag"))

    def test_what_is_inside(self):
        table = layout.Table(ROOT, os.getcwd())
        wanted = {entry.path for entry in table.entries("wheel", ARCH, "9.8")}
        wanted |= {NAME + ".dist-info/" + name for name in ("METADATA", "WHEEL", "RECORD", "sboms/sbom.spdx.json")}
        self.assertEqual(wanted, set(self.names))
        self.assertEqual(len(wanted), len(self.names))
        self.assertEqual(set(COMMANDS), {name.rpartition("/")[2] for name in self.names if "/scripts/" in name})
        self.assertIn("tcpx/lib/libnccl-net-tcpx.so", self.names)
        self.assertIn("tcpx/lib/libnccl-profiler-tcpx.so", self.names)

    def test_order_mode_and_time(self):
        self.assertEqual(sorted(self.names[:-1], key=lambda name: (".dist-info/" in name, name)), self.names[:-1])
        self.assertEqual(NAME + ".dist-info/RECORD", self.names[-1])
        for info in self.archive.infolist():
            self.assertEqual((2023, 11, 14, 22, 13, 20), info.date_time, info.filename)
            program = 0o755 if "/scripts/" in info.filename else 0o644
            self.assertEqual(stat.S_IFREG | program, info.external_attr >> 16, info.filename)

    def test_record(self):
        rows = list(csv.reader(self.archive.read(self.names[-1]).decode().splitlines()))
        self.assertEqual(self.names, [name for name, _, _ in rows])
        self.assertEqual([self.names[-1], "", ""], rows.pop())
        for name, digest, size in rows:
            data = self.archive.read(name)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            self.assertEqual(("sha256=" + wanted, str(len(data))), (digest, size), name)

    def test_metadata(self):
        fields = email.message_from_bytes(self.archive.read(NAME + ".dist-info/METADATA"))
        wanted = {"Metadata-Version": "2.4", "Name": "nccl-net-tcpx", "Version": "9.8", "Requires-Python": ">=3.8"}
        wanted.update({"Summary": layout.SUMMARY, "License-Expression": layout.LICENCE})
        self.assertEqual(wanted, {name: fields[name] for name in wanted})
        legal = NAME + ".dist-info/licenses/"
        inside = sorted(name[len(legal) :] for name in self.names if name.startswith(legal))
        self.assertEqual(inside, fields.get_all("License-File"))
        self.assertIn("LICENSE", inside)
        self.assertIsNone(fields["Requires-Dist"])
        self.assertTrue(fields.get_payload().startswith("# nccl-net-tcpx\n"))

    def test_sbom(self):
        document = json.loads(self.archive.read(NAME + ".dist-info/sboms/sbom.spdx.json"))
        self.assertEqual("libnccl-net-tcpx-9.8-%s-wheel" % ARCH, document["name"])
        sums = {part["fileName"][2:]: part["checksums"][1]["checksumValue"] for part in document["files"]}
        self.assertEqual(len(self.names) - 4, len(sums))
        for name, value in sums.items():
            self.assertEqual(hashlib.sha256(self.archive.read(name)).hexdigest(), value, name)


class SymbolsTest(Packed):
    """Every library and program runs with glibc 2.28; what would not is not packed."""

    def check(self, *files):
        return run("bash", ROOT / "deploy/packaging/check_symbols.sh", *files)

    def test_every_elf_file(self):
        files = []
        with zipfile.ZipFile(self.wheel) as archive:
            for name in archive.namelist():
                if archive.read(name)[:4] == b"\x7fELF":
                    files.append(archive.extract(name, self.folder / "unpacked"))
        self.assertEqual(5, len(files))
        expect_done(self.check(*files))

    def test_a_newer_glibc_is_refused(self):
        # A program of this system, whose glibc is newer, in place of one.
        built = self.folder / "built"
        for _, (what, source, *_) in layout.Table(ROOT, os.getcwd()).rows():
            if what == "built":
                (built / source).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(shutil.which("bash") if source.endswith("net_bench") else source, built / source)
        done = pack(self.folder / "refused", built)
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, r"not for a wheel: FAILED: .*/net_bench: symbols newer than GLIBC_2\.28")
        self.assertFalse(list((self.folder / "refused").iterdir()))

    def test_another_library_is_refused(self):
        done = self.check(shutil.which("bash"))
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stdout, r"needs libraries other than glibc's\nlibtinfo\.so\.6\n")


@unittest.skipUnless(HAS_VENV, "no ensurepip")
class Installed(Packed):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = cls.venv / "bin/python3"
        if not cls.venv.exists():
            expect_done(run(sys.executable, "-m", "venv", cls.venv, env=environment()))
            Packed.before = cls.listing()
            cls.pip("install", "--no-index", "--no-cache-dir", cls.wheel)
        cls.lib = pathlib.Path(cls.python_says("import tcpx; print(tcpx.__path__[0])").strip()) / "lib"

    @classmethod
    def listing(cls):
        return sorted(path for path in cls.venv.rglob("*") if path.name != "__pycache__" and path.suffix != ".pyc")

    @classmethod
    def pip(cls, *arguments):
        return expect_done(run(cls.python, "-m", "pip", *arguments, env=environment()))

    @classmethod
    def python_says(cls, code, **more):
        return expect_done(run(cls.python, "-c", code, env=environment(**more)))

    def wanted(self, profiler=False):
        variables = {"NCCL_NET_PLUGIN": str(self.lib / "libnccl-net-tcpx.so"), "NCCL_NET": "tcpx"}
        if profiler:
            variables["NCCL_PROFILER_PLUGIN"] = str(self.lib / "libnccl-profiler-tcpx.so")
        return variables


class CommandsTest(Installed):
    def test_versions(self):
        self.assertIn("Version: 9.8\n", self.pip("show", "nccl-net-tcpx"))
        self.assertEqual("9.8\n", self.python_says("import tcpx; print(tcpx.__version__)"))
        self.assertEqual("nccl-net-tcpx 9.8\n", expect_done(self.tcpx("--version")))

    def tcpx(self, *arguments):
        return run(self.python, "-m", "tcpx", *arguments, env=environment())

    def test_commands_start(self):
        for command in COMMANDS:
            done = run(self.venv / "bin" / command, "--help", env=environment())
            self.assertIn("usage: ", expect_done(done), command)
            done = run(self.venv / "bin" / command, "--version", env=environment())
            self.assertRegex(expect_done(done), r"^%s \d+\.\d+(, build id \w+)?\n$" % command)

    def test_net_bench_drives_the_installed_plugin(self):
        arguments = "--no-priority --no-pin --yield --keep-disturbed --phase any --mode latency -b 8 -e 8 --samples 1"
        command = [self.venv / "bin/net_bench", "--plugin", self.wanted()["NCCL_NET_PLUGIN"], *arguments.split()]
        expect_done(run(*command, "--check", env=environment(NCCL_SOCKET_IFNAME="lo")))

    def test_the_doctor_finds_the_plugin_by_the_exports(self):
        done = run(self.venv / "bin/tcpx_doctor", "--json", env=environment(**self.wanted()))
        said = [one["text"] for one in json.loads(done.stdout)["findings"] if one["check"] == "plugin"]
        self.assertTrue([text for text in said if text.startswith(str(self.lib) + "/libnccl-net-tcpx.so loads")], said)

    def test_exports_for_a_shell(self):
        for options in ([], ["--profiler"]):
            lines = expect_done(self.tcpx("--shell", *options))
            script = 'eval "$1"; shift; for name; do printf "%s=%s\\n" "$name" "${!name-unset}"; done'
            found = expect_done(run("bash", "-euc", script, "bash", lines, *VARIABLES, env=environment()))
            wanted = self.wanted(bool(options))
            self.assertEqual("".join("%s=%s\n" % (name, wanted.get(name, "unset")) for name in VARIABLES), found)
            self.assertEqual(len(wanted), lines.count("export "))

    def test_exports_as_json(self):
        self.assertEqual(self.wanted(), json.loads(expect_done(self.tcpx("--json"))))
        self.assertEqual(self.wanted(True), json.loads(expect_done(self.tcpx("--json", "--profiler"))))

    def test_without_options(self):
        text = expect_done(self.tcpx())
        self.assertTrue(text.startswith("usage: python -m tcpx"))
        self.assertTrue(text.endswith("The plugin is %s\n" % self.wanted()["NCCL_NET_PLUGIN"]))

    def test_wrong_use(self):
        for arguments in (["--bogus"], ["--shell", "--json"], ["x"]):
            done = self.tcpx(*arguments)
            self.assertEqual((2, ""), (done.returncode, done.stdout), arguments)
            self.assertIn("usage: ", done.stderr)


class EnableTest(Installed):
    def enabled(self, arguments="", before="", **more):
        """The variables after enable()."""
        code = "import json, os, tcpx\n%s\ntcpx.enable(%s)\n" % (before, arguments)
        code += "print(json.dumps({name: os.environ[name] for name in %r if name in os.environ}))" % (VARIABLES,)
        return json.loads(self.python_says(code, **more))

    def refusal(self, before="", **more):
        """The text of the error; the environment must be as it was."""
        code = "import os, tcpx\n%s\nold = dict(os.environ)\ntry:\n    tcpx.enable()\n" % before
        code += "except RuntimeError as error:\n    print(error)\nassert old == dict(os.environ)"
        return self.python_says(code, **more)

    def test_sets_what_is_missing(self):
        self.assertEqual(self.wanted(), self.enabled())
        self.assertEqual(self.wanted(True), self.enabled("profiler=True"))
        self.assertEqual(self.wanted(), self.enabled(NCCL_NET_PLUGIN="", NCCL_NET=""))

    def test_the_process_itself_has_them(self):
        # What getenv() of C sees, and with it NCCL.
        code = "import ctypes, tcpx\ntcpx.enable()\nlibc = ctypes.CDLL(None)\nlibc.getenv.restype = ctypes.c_char_p\n"
        code += "print(libc.getenv(b'NCCL_NET_PLUGIN').decode())"
        self.assertEqual(self.wanted()["NCCL_NET_PLUGIN"], self.python_says(code).strip())

    def test_keeps_what_is_the_same(self):
        link = self.folder / "link.so"
        link.symlink_to(self.wanted()["NCCL_NET_PLUGIN"])
        same = dict(NCCL_NET_PLUGIN=str(link), NCCL_NET="TCPX")
        self.assertEqual(same, self.enabled(**same))
        self.assertEqual(self.wanted(), self.enabled(before="tcpx.enable()"))
        other_profiler = dict(NCCL_PROFILER_PLUGIN="inspector")
        self.assertEqual(dict(self.wanted(), **other_profiler), self.enabled(**other_profiler))

    def test_refuses_another_choice(self):
        for name, value in (("NCCL_NET_PLUGIN", "ofi"), ("NCCL_NET_PLUGIN", PLUGIN), ("NCCL_NET", "Socket")):
            text = self.refusal(**{name: value})
            self.assertIn("%s is set to %r" % (name, value), text)
            self.assertIn("unset it, or set it to", text)

    def load(self, name):
        """Code that loads a library of that name; which one it is does not matter."""
        shutil.copy(PLUGIN, self.folder / name)
        return "import ctypes; ctypes.CDLL(%r)" % str(self.folder / name)

    def test_refuses_when_nccl_is_loaded(self):
        for name in ("libnccl.so.2", "libnccl.so.2.21.5", "libnccl.so", "librccl.so.1"):
            text = self.refusal(self.load(name))
            self.assertIn("NCCL is loaded already (%s/%s): call tcpx.enable() before torch" % (self.folder, name), text)
            self.assertIn('eval "$(python -m tcpx --shell)"', text)
        removed = self.load("libnccl.so.2") + "; os.unlink(%r)" % str(self.folder / "libnccl.so.2")
        self.assertIn("NCCL is loaded already", self.refusal(removed))

    def test_other_libraries_are_not_nccl(self):
        for name in ("libnccl-net.so", "libnccl.so.2.txt", "notlibnccl.so.2"):
            self.assertEqual(self.wanted(), self.enabled(before=self.load(name)))

    def test_again_when_nccl_is_loaded(self):
        self.assertEqual(self.wanted(), self.enabled(before="tcpx.enable()\n" + self.load("libnccl.so.2")))
        self.assertEqual(self.wanted(), self.enabled(before=self.load("libnccl.so.2"), **self.wanted()))

    def copy_of_the_package(self, folder):
        """The package in another folder, from which it is imported."""
        shutil.copytree(self.lib.parent, folder / "tcpx")
        self.addCleanup(shutil.rmtree, folder)
        return "import sys; sys.path.insert(0, %r); del sys.modules['tcpx']; import tcpx" % str(folder)

    def test_refuses_a_path_that_nccl_can_not_take(self):
        long = self.folder / ("x" * 200)
        for folder in (self.folder / "with,comma", long / ("y" * 60)):
            self.assertIn("NCCL can't load %s" % folder, self.refusal(self.copy_of_the_package(folder)))

    def test_refuses_without_the_library(self):
        before = self.copy_of_the_package(self.folder / "without")
        (self.folder / "without/tcpx/lib/libnccl-net-tcpx.so").unlink()
        self.assertIn("libnccl-net-tcpx.so is missing: install the wheel", self.refusal(before))
        command = [self.python, "-m", "tcpx", "--shell"]
        done = run(*command, cwd=self.folder / "without", env=environment(PYTHONPATH=str(self.folder / "without")))
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r"^tcpx: .* is missing: install the wheel nccl-net-tcpx\n$")


class RemovedTest(Installed):
    def test_nothing_is_left(self):
        self.assertNotEqual(self.before, self.listing())
        self.pip("uninstall", "--yes", "nccl-net-tcpx")
        self.addCleanup(self.pip, "install", "--no-index", "--no-cache-dir", self.wheel)
        self.assertEqual(self.before, self.listing())


class CondaTest(Installed):
    """conda itself is in no package of Debian's: what its recipe says is compared, and its script is run."""

    def test_recipe(self):
        version = re.search(r'kVersion\[\] = "(.*)"', (ROOT / "common/build_info.h").read_text()).group(1)
        text = (ROOT / "deploy/conda/meta.yaml").read_text()
        self.assertIn('{%% set version = "%s" %%}\n' % version, text)
        recipe = yaml.safe_load(re.sub(r"\{%.*?%\}", "", text).replace("{{ version }}", version))
        self.assertEqual({"name": "nccl-net-tcpx", "version": version}, recipe["package"])
        self.assertEqual((layout.LICENCE, layout.SUMMARY), (recipe["about"]["license"], recipe["about"]["summary"]))
        self.assertTrue((ROOT / "deploy/conda" / recipe["about"]["license_file"]).is_file())
        self.assertEqual((ROOT / "dist").resolve(), (ROOT / "deploy/conda" / recipe["source"]["path"]).resolve())
        tried = {command.split()[0] for command in recipe["test"]["commands"]}
        self.assertEqual({*COMMANDS, "python"}, tried)

    def test_its_script_installs_the_same_files(self):
        self.pip("uninstall", "--yes", "nccl-net-tcpx")
        self.addCleanup(self.pip, "install", "--no-index", "--no-cache-dir", self.wheel)
        source = self.folder / "source"
        source.mkdir()
        shutil.copy(self.wheel, source)
        variables = dict(PYTHON=str(self.python), PREFIX=str(self.venv), SRC_DIR=str(source), PKG_VERSION="9.8")
        expect_done(run("bash", ROOT / "deploy/conda/build.sh", cwd=source, env=environment(**variables)))
        done = run(self.python, "-m", "tcpx", "--json", env=environment())
        self.assertEqual(self.wanted(), json.loads(expect_done(done)))
        packages, scripts = self.lib.parent.parent, NAME + ".data/scripts/"
        with zipfile.ZipFile(self.wheel) as archive:
            for name in archive.namelist()[:-1]:  # pip writes its own RECORD
                program = name.startswith(scripts)
                path = self.venv / "bin" / name[len(scripts) :] if program else packages / name
                self.assertEqual(archive.read(name), path.read_bytes(), name)
                self.assertEqual(program, os.access(path, os.X_OK), name)


if __name__ == "__main__":
    if not HAS_VENV:
        print("SKIPPED: installing the wheel: no ensurepip (apt-get install python3-venv); its form is tested")
    unittest.main()
