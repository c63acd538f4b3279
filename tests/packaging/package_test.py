#!/usr/bin/env python3
"""package_test: the packages hold what the table says, twice the same bytes, and say truly what is inside.

usage: package_test.py WORKSPACE BUILT...

WORKSPACE leads to the sources, and BUILT are the runfiles of what is packed.
"""

import collections
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent
BUILT = [sys.argv.pop(1) for _ in sys.argv[1:]]
sys.path.insert(0, str(ROOT / "deploy/packaging"))
sys.dont_write_bytecode = True

import deb  # noqa: E402
import layout  # noqa: E402
import sbom  # noqa: E402

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
KINDS = ("deb", "tar", "wheel") + (("rpm",) if shutil.which("rpmbuild") else ())
EPOCH = 1700000000


def pack(out, **environment):
    """Packs into a folder and returns {kind: path}."""
    command = [sys.executable, str(ROOT / "deploy/packaging/package.py"), "--root", str(ROOT), "--built", os.getcwd()]
    command += ["--arch", ARCH, "--version", "9.8", "--epoch", str(EPOCH), "--commit", "c0ffee", "--out", str(out)]
    done = subprocess.run(
        command + list(KINDS), check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **environment)
    )
    return dict(zip(KINDS, map(pathlib.Path, done.stdout.split())))


def contents(path):
    """Returns {destination: (TarInfo, bytes)} of a .tar.gz or .deb."""
    if path.suffix == ".deb":
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], check=True, stdout=subprocess.PIPE).stdout
        top, tarball = "./", tarfile.open(fileobj=io.BytesIO(data))
    else:
        top, tarball = "libnccl-net-tcpx-9.8/", tarfile.open(path)
    found = {}
    for info in tarball:
        file = tarball.extractfile(info) if info.isfile() else None
        name = info.name + "/" if info.isdir() else info.name
        found[name[len(top) :]] = (info, file.read() if file else None)
    return found


class PackedOnce(unittest.TestCase):
    first = None  # {kind: path}, for all tests

    @classmethod
    def setUpClass(cls):
        if PackedOnce.first is None:
            PackedOnce.scratch = tempfile.TemporaryDirectory()
            old = os.umask(0o022)
            PackedOnce.first = pack(pathlib.Path(PackedOnce.scratch.name) / "one", TZ="UTC", LC_ALL="C")
            os.umask(old)


class PackageTest(PackedOnce):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = layout.Table(ROOT, os.getcwd())

    def pack_again(self):
        """Another user, elsewhere."""
        old = os.umask(0o077)
        folder = pathlib.Path(self.scratch.name) / "another"
        packed = pack(folder, TZ="Asia/Tokyo", LC_ALL="C.UTF-8", USER="somebody", HOME="/nowhere")
        os.umask(old)
        return packed

    def test_the_same_bytes_twice(self):
        second = self.pack_again()
        for kind in KINDS:
            self.assertEqual(self.first[kind].name, second[kind].name)
            self.assertEqual(self.first[kind].read_bytes(), second[kind].read_bytes(), kind)

    def test_the_table_and_nothing_else(self):
        for kind in ("deb", "tar"):
            doc = layout.folders(kind, ARCH)["doc"]
            wanted = {entry.path for entry in self.table.entries(kind, ARCH)} | {doc + "/sbom.spdx.json"}
            found = {name for name, (info, _) in contents(self.first[kind]).items() if not info.isdir()}
            self.assertEqual(wanted, found, kind)

    def test_what_is_built_is_what_is_packed(self):
        packed = {words[1] for _, words in self.table.rows() if words[0] == "built"}
        self.assertEqual(packed, set(BUILT), "deploy/packaging/files.txt and //deploy/packaging:built")

    def test_tools_install_brings_what_the_tarball_has(self):
        listed = re.search(r"^names=\((.*?)\)$", (ROOT / "tools/install").read_text(), re.M | re.S).group(1)
        listed = {word.strip('"').replace("$completion", "complete") for word in listed.split()}
        wanted = {words[-1] for _, words in self.table.rows() if words[0] != "shared"}
        wanted = {re.sub(r"^lib/", "", word.replace("{", "").replace("}", "")) for word in wanted}
        wanted = {word for word in wanted if re.match(r"bin/|complete/|lib[^/]*\.so$", word)}
        self.assertEqual(wanted - {"complete/tcpx_default"}, listed)

    def test_no_page_or_manifest_is_left_out(self):
        packed = {words[1] for _, words in self.table.rows() if words[0] == "file"}
        folders = [ROOT / "deploy" / name for name in ("chart", "grafana", "kubernetes", "prometheus")]
        wanted = [path for folder in folders for path in folder.rglob("*")
                  if path.is_file()] + [*ROOT.glob("docs/*.md")]
        wanted = {str(path.relative_to(ROOT)) for path in wanted if path.name != "BUILD.bazel"}
        self.assertLess(40, len(wanted))
        self.assertEqual(set(), wanted - packed)

    def test_owner_mode_and_time(self):
        for kind in ("deb", "tar"):
            for name, (info, data) in contents(self.first[kind]).items():
                self.assertEqual((0, 0), (info.uid, info.gid), name)
                self.assertEqual(EPOCH, info.mtime, name)
                if info.issym():
                    continue
                program = info.isdir() or name.split("/")[-2] in ("bin", "sbin")
                self.assertEqual(0o755 if program else 0o644, info.mode, name)

    def test_only_the_tarball_has_the_shared_link(self):
        link, _ = contents(self.first["tar"])["lib/libnccl-net.so"]
        self.assertEqual("libnccl-net-tcpx.so", link.linkname)
        self.assertFalse([name for name in contents(self.first["deb"]) if name.endswith("libnccl-net.so")])

    def test_every_package_has_the_name_that_rccl_looks_for(self):
        for kind in ("deb", "tar"):
            lib = layout.folders(kind, ARCH)["lib"]
            link, _ = contents(self.first[kind])[lib + "/librccl-net-tcpx.so"]
            self.assertEqual("libnccl-net-tcpx.so", link.linkname, kind)

    def test_licences_of_what_is_linked_in(self):
        files = contents(self.first["tar"])
        words = {
            "LICENSE": b"Apache License",
            "licences/abseil-cpp.txt": b"Apache License",
            "licences/liburing-MIT.txt": b"Permission is hereby granted, free of charge",
            "licences/libsodium.txt": b"ISC License",
            "licences/uplot.txt": b"Permission is hereby granted, free of charge",
            "licences/gcc-runtime.txt": b"GCC RUNTIME LIBRARY EXCEPTION",
        }
        for name, text in words.items():
            self.assertIn(text, files["doc/" + name][1], name)

    def test_every_command_has_a_manual_page_with_its_options(self):
        files = contents(self.first["deb"])
        programs = [name for name in files if re.match(r"usr/s?bin/\w", name)]
        commands = {name.split("/")[-1] for name in programs}
        wanted = {"%s.%d.gz" % (name.split("/")[-1], 8 if "sbin" in name else 1) for name in programs}
        found = {name.split("/")[-1]: data for name, (_, data) in files.items() if re.search(r"/man[18]/.", name)}
        self.assertEqual(wanted, set(found))
        pages = {name.partition(".")[0]: data for name, data in found.items()}
        self.assertEqual(commands, set(pages))
        for command in sorted(commands):
            usage = subprocess.run([self.command(command), "--help"], check=True, stdout=subprocess.PIPE, text=True)
            text = gzip.decompress(pages[command]).decode().replace("\\-", "-").replace("\\&", "")
            self.assertRegex(text, r"\.SH NAME\n%s - \w" % command)
            for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*", usage.stdout):
                self.assertIn(option, text, command)

    def test_pages_have_no_dead_links(self):
        for kind in ("deb", "tar"):
            files, seen = contents(self.first[kind]), 0
            for name in [name for name in files if name.endswith(".md")]:
                for target in re.findall(r"\]\(([^()\s#]+)[^()\s]*\)", files[name][1].decode()):
                    if re.match(r"\w+:", target):
                        continue
                    seen += 1
                    self.assertIn(os.path.normpath(os.path.join(os.path.dirname(name), target)), files, (kind, name))
            self.assertLess(100, seen)

    def test_what_operators_need_is_there(self):
        for kind, share in (("deb", "usr/share/libnccl-net-tcpx/"), ("tar", "share/")):
            files = contents(self.first[kind])
            for name in ("grafana/tcpx.json", "prometheus/tcpx-rules.yml", "seccomp/tcpx-io-uring.json",
                         "chart/tcpx/Chart.yaml", "kubernetes/installer.yaml"):
                self.assertIn(share + name, files)
            self.assertIn(b"complete -F",
                          files[share.replace("libnccl-net-tcpx/", "") + "bash-completion/completions/tcpx_doctor"][1])
            (top,) = [data for name, (_, data) in files.items() if name.endswith("bin/tcpx_top")]
            self.assertIn(b'VERSION = "9.8"', top)

    def test_tcpx_7_has_every_parameter_in_80_columns(self):
        page = gzip.decompress(contents(self.first["deb"])["usr/share/man/man7/tcpx.7.gz"][1])
        text = page.decode().replace("\\-", "-")
        names = set(re.findall(r"^### (\w+)$", (ROOT / "docs/parameters.md").read_text(), re.M))
        self.assertLess(40, len(names))
        for name in names:
            self.assertIn("\n.B %s\n" % name, text)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tascii", "-rLL=80n", "-ww", "-P-c"], input=page,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(b"", done.stderr)
            self.assertLessEqual(max(map(len, re.sub(rb".\x08", b"", done.stdout).splitlines())), 80)

    def test_contact_fields_are_those_given(self):
        build = collections.namedtuple("Build", "version arch url vendor bugs")
        with_all = deb.control([], build("1", "amd64", "https://a.example", "B <b@b.example>", "https://c.example"))
        for line in ("Homepage: https://a.example", "Maintainer: B <b@b.example>", "Bugs: https://c.example"):
            self.assertIn(line + "\n", with_all)
        self.assertNotIn("Homepage", deb.control([], build("1", "amd64", "", "", "")))

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_manual_pages_are_good_troff(self):
        for name, (_, data) in contents(self.first["deb"]).items():
            if not name.startswith("usr/share/man/") or not name.endswith(".gz"):
                continue
            command = ["groff", "-man", "-ww", "-Tascii", "-rLL=80n", "-P-c"]
            done = subprocess.run(command, input=gzip.decompress(data), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((0, b""), (done.returncode, done.stderr), name)
            lines = re.sub(rb".\x08", b"", done.stdout).splitlines()
            self.assertEqual([], [line for line in lines if len(line) > 80], name)

    def command(self, name):
        """Where a command of the packages lies that runs here."""
        for _, (what, source, *destination) in self.table.rows():
            if destination in (["{bin}/" + name], ["{admin}/" + name]):
                return os.path.join(os.getcwd() if what == "built" else ROOT, source)
        self.fail("no command " + name)

    def test_a_wrong_processor_is_refused(self):
        other = {"amd64": "arm64", "arm64": "amd64"}[ARCH]
        with self.assertRaisesRegex(layout.LayoutError, "is not built for " + other):
            self.table.entries("deb", other)

    def test_wrong_use(self):
        cases = {
            (): (2, "usage: tools/package"),
            ("--help",): (0, "usage: tools/package"),
            ("--bogus", "out"): (2, "unknown option --bogus"),
            ("--arch", "m68k", "out"): (2, "--arch needs amd64, arm64 or all"),
            ("one", "two"): (2, "one DIR only"),
        }
        for arguments, (code, text) in cases.items():
            command = [str(ROOT / "tools/package")] + list(arguments)
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(code, done.returncode, arguments)
            self.assertIn(text, done.stdout)

    def test_the_cipher_comes_along(self):
        asks = {"deb": (["dpkg-deb", "-f", str(self.first["deb"]), "Recommends"], "libgcrypt20")}
        if "rpm" in KINDS:
            asks["rpm"] = (["rpm", "-qp", "--recommends", str(self.first["rpm"])], "libgcrypt")
        for command, package in asks.values():
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertIn(package, re.split(r"[,\s]+", said))

    @unittest.skipUnless("rpm" in KINDS, "no rpmbuild")
    def test_rpm(self):
        query = ["rpm", "-qp", "--qf", "[%{FILENAMES} %{FILEUSERNAME} %{FILEMODES:perms} %{FILEMTIMES}\n]"]
        lines = subprocess.run(query + [str(self.first["rpm"])], check=True, stdout=subprocess.PIPE, text=True).stdout
        rows = [line.split() for line in lines.splitlines()]
        found = {name[1:] for name, _, mode, _ in rows if not mode.startswith("d")}
        doc = layout.folders("rpm", ARCH)["doc"]
        self.assertEqual({entry.path for entry in self.table.entries("rpm", ARCH)} | {doc + "/sbom.spdx.json"}, found)
        self.assertEqual({("root", str(EPOCH))}, {(user, time) for _, user, _, time in rows})


class SbomTest(PackedOnce):
    """The fields that SPDX 2.3 requires, and whether they are true."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = contents(cls.first["deb"])
        cls.document = json.loads(cls.files["usr/share/doc/libnccl-net-tcpx/sbom.spdx.json"][1])

    def test_document(self):
        document = self.document
        self.assertEqual("SPDX-2.3", document["spdxVersion"])
        self.assertEqual("CC0-1.0", document["dataLicense"])
        self.assertEqual("SPDXRef-DOCUMENT", document["SPDXID"])
        self.assertRegex(document["documentNamespace"], r"^https://[^#]+c0ffee$")
        self.assertEqual("libnccl-net-tcpx-9.8-%s-deb" % ARCH, document["name"])
        self.assertEqual("2023-11-14T22:13:20Z", document["creationInfo"]["created"])
        self.assertRegex(document["creationInfo"]["creators"][0], r"^(Tool|Person|Organization): ")

    def test_identifiers(self):
        parts = self.document["packages"] + self.document["files"]
        idents = [part["SPDXID"] for part in parts]
        self.assertEqual(len(idents), len(set(idents)))
        for ident in idents:
            self.assertRegex(ident, r"^SPDXRef-[A-Za-z0-9.-]+$")
        known = set(idents) | {"SPDXRef-DOCUMENT"}
        for relation in self.document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
        described = [r for r in self.document["relationships"] if r["relationshipType"] == "DESCRIBES"]
        self.assertEqual(["SPDXRef-Package-libnccl-net-tcpx"], [r["relatedSpdxElement"] for r in described])

    def test_packages(self):
        for package in self.document["packages"]:
            for field in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "copyrightText"):
                self.assertTrue(package[field], package["name"])
        names = {package["name"] for package in self.document["packages"]}
        self.assertEqual({"libnccl-net-tcpx", "abseil-cpp", "liburing", "libsodium", "uPlot", "gcc-runtime"}, names)

    def test_sources_are_those_of_the_build(self):
        known = sbom.sources((ROOT / "third_party/deps.bzl").read_text())
        self.assertLessEqual({key for key, *_ in sbom.LINKED_IN}, set(known))
        sums = {part["checksums"][0]["checksumValue"] for part in self.document["packages"] if "checksums" in part}
        copied = {hashlib.sha256((ROOT / "third_party" / file).read_bytes()).hexdigest() for file, _ in sbom.COPIED_IN}
        self.assertEqual({known[key][1] for key, *_ in sbom.LINKED_IN} | copied, sums)
        for key, _, version, *_ in sbom.LINKED_IN:
            self.assertIn(version, known[key][0])

    def test_files(self):
        stated = {part["fileName"][2:]: part["checksums"] for part in self.document["files"]}
        packed = {name: data for name, (info, data) in self.files.items() if info.isfile()}
        packed.pop("usr/share/doc/libnccl-net-tcpx/sbom.spdx.json")
        self.assertEqual(set(packed), set(stated))
        for name, data in packed.items():
            sums = {item["algorithm"]: item["checksumValue"] for item in stated[name]}
            self.assertEqual({"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}, sums)


if __name__ == "__main__":
    if "rpm" not in KINDS:
        print("SKIPPED: the .rpm: no rpmbuild (apt-get install rpm); the others are tested")
    unittest.main()
