"""The bill of materials of a package: SPDX 2.3 as JSON.

Purpose: what is inside, from where, with sums and licences. Names, addresses and sums of the sources come from
         third_party/deps.bzl, so they are those that the build takes.
Errors:  KeyError where deps.bzl has no such source.
Source:  the SPDX specification 2.3, sections 6 (document), 7 (package), 8 (file), 11 (relationship).
"""

import hashlib
import json
import re
import subprocess
import time

import layout

# name in deps.bzl, name in the world, version, licence, who holds the rights
LINKED_IN = (
    ("com_google_absl", "abseil-cpp", "20220623.1", "Apache-2.0", "2017-2022 The Abseil Authors"),
    ("liburing", "liburing", "2.3", "MIT", "2020 Jens Axboe"),
    ("libsodium", "libsodium", "1.0.18", "ISC", "2013-2019 Frank Denis"),
)
# Inside net_bench and rma_bench, from third_party/: file; name, version, where it is from, licence, rights
COPIED_IN = (
    (
        "uplot/uPlot.iife.min.js",
        ("uPlot", "1.6.32", "https://github.com/leeoniya/uPlot", "MIT", "2022 Leon Sorokin"),
    ),
)
GCC_LICENCE = "GPL-3.0-or-later WITH GCC-exception-3.1"


def sources(deps):
    """Returns {name: (url, sha256)} of the tarballs that deps.bzl names."""
    pattern = r'name = "(\w+)",(?:\s*build_file = "[^"]*",)?\s*sha256 = "(\w+)",[^)]*?url = "([^"]*)"'
    return {name: (url, sha256) for name, sha256, url in re.findall(pattern, deps)}


def spdx_id(kind, name):
    """An identifier of the letters that SPDX allows."""
    return "SPDXRef-%s-%s" % (kind, re.sub(r"[^A-Za-z0-9.-]", "-", name))


def utc(epoch):
    """A time as SPDX writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def package(name, version, location, licence, rights, **more):
    """One package of the document, with the fields that every one must have."""
    return {
        "SPDXID": spdx_id("Package", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": location,
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": rights,
        "supplier": "NOASSERTION",
        **more,
    }


def file_of(entry):
    """One file of the package."""
    return {
        "SPDXID": spdx_id("File", entry.path),
        "fileName": "./" + entry.path,
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(entry.data).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(entry.data).hexdigest()},
        ],
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def verification(files, sbom_path):
    """The sum over the sums of all files, but this document's own."""
    sums = sorted(item["checksums"][0]["checksumValue"] for item in files)
    return {
        "packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest(),
        "packageVerificationCodeExcludedFiles": ["./" + sbom_path],
    }


def parts(root):
    """The packages that are linked in."""
    known = sources((root / "third_party/deps.bzl").read_text())
    for key, name, version, licence, rights in LINKED_IN:
        url, sha256 = known[key]
        sums = [{"algorithm": "SHA256", "checksumValue": sha256}]
        yield package(name, version, url, licence, rights, checksums=sums)
    for file, described in COPIED_IN:
        data = (root / "third_party" / file).read_bytes()
        sums = [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]
        yield package(*described, comment="sum of " + file, checksums=sums)
    gcc = subprocess.run(["gcc", "-dumpfullversion"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    rights = "Free Software Foundation, Inc."
    yield package("gcc-runtime", gcc, "https://gcc.gnu.org/", GCC_LICENCE, rights)


def document(root, entries, build, kind, sbom_path):
    """Returns the document about a package that holds these entries, as bytes."""
    files = [file_of(entry) for entry in entries if entry.data is not None]
    ours = package(layout.NAME, build.version, "NOASSERTION", "Apache-2.0", "the authors of libnccl-net-tcpx")
    ours.update(filesAnalyzed=True, packageVerificationCode=verification(files, sbom_path))
    ours["licenseInfoFromFiles"] = ["NOASSERTION"]
    ours["hasFiles"] = [item["SPDXID"] for item in files]
    ours["comment"] = "built from commit %s for %s" % (build.commit, build.arch)
    linked = list(parts(root))
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    relations += [(ours["SPDXID"], "STATIC_LINK", part["SPDXID"]) for part in linked]
    relations += [(ours["SPDXID"], "CONTAINS", item["SPDXID"]) for item in files]
    name = "-".join((layout.NAME, build.version, build.arch, kind))
    content = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": "https://spdx.org/spdxdocs/%s-%s" % (name, build.commit),
        "creationInfo": {"created": utc(build.epoch), "creators": ["Tool: tools/package"]},
        "packages": [ours] + linked,
        "files": files,
        "relationships": [
            {"spdxElementId": a, "relationshipType": what, "relatedSpdxElement": b} for a, what, b in relations
        ],
    }
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()
