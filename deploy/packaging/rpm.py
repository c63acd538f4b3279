"""The .rpm, by Debian's rpmbuild.

Purpose: what it needs of libc, symbol versions and all, rpmbuild reads from the files; times are the commit's, the
         build host has no name, and nothing is stripped or changed.
"""

import os
import subprocess

import layout
import tree

SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: {summary}
License: {licence}
Group: System Environment/Libraries
{contact}Recommends: libgcrypt
Recommends: python3

%description
Moves the traffic of NCCL between machines that have Ethernet and no RDMA,
over several sockets per connection. Set NCCL_NET_PLUGIN=tcpx to use it.

%install
cp -a {tree}/. %{{buildroot}}/

%post
{post}
%preun
{preun}
%files
{files}
"""
# Nothing of this machine, and nothing done to the files.
SETTINGS = {
    "_buildhost": "localhost",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "_binary_payload": "w6.gzdio",
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    "__strip": "/bin/true",
    "_build_id_links": "none",
    "_rpmfilename": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
}


def spec(root, entries, build, folder):
    """The text of the spec file."""
    lib = layout.ARCHES[build.arch].rpm_lib
    own = ("usr/share/doc/" + layout.NAME, "usr/share/" + layout.NAME)
    # rpmbuild takes no mode for a link.
    modes = [(entry.path, "-" if entry.link else "%o" % entry.mode) for entry in entries]
    files = ["%%attr(%s, root, root) /%s" % (mode, path) for path, mode in modes]
    files += ["%%dir %%attr(755, root, root) /%s" % path for path in layout.parents(entries) if path.startswith(own)]
    return SPEC.format(
        name=layout.NAME,
        version=build.version,
        summary=layout.SUMMARY,
        licence=layout.LICENCE,
        contact=layout.contact(URL=build.url, Vendor=build.vendor, BugURL=build.bugs),
        tree=folder,
        post=tree.script(root, "rpm_post", lib),
        preun=tree.script(root, "rpm_preun", lib),
        files="\n".join(sorted(files)),
    )


def write(root, entries, build, scratch, out):
    """Writes the package and returns its path."""
    top, folder = scratch / "rpm", scratch / "rpm_tree"
    top.mkdir()
    tree.lay(entries, folder, build.epoch)
    (top / "tcpx.spec").write_text(spec(root, entries, build, folder))
    arch = layout.ARCHES[build.arch].rpm
    settings = dict(SETTINGS, _topdir=str(top), _rpmdir=str(out), _dbpath=str(top / "db"), _tmppath=str(top))
    command = ["rpmbuild", "-bb", "--quiet", "--nodeps", "--target", arch + "-linux"]
    for name, value in settings.items():
        command += ["--define", "%s %s" % (name, value)]
    environment = dict(os.environ, SOURCE_DATE_EPOCH=str(build.epoch), LC_ALL="C", HOME=str(top))
    done = subprocess.run(
        command + [str(top / "tcpx.spec")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    if done.returncode != 0:
        raise layout.LayoutError("rpmbuild: " + done.stdout)
    return out / ("%s-%s-1.%s.rpm" % (layout.NAME, build.version, arch))
