"""A folder that holds a package's files, for the tools that pack folders.

Purpose: modes and times are those of the table and the commit, whatever the caller's umask is. Owners are the packing
         tools' business.
"""

import os

import layout


def lay(entries, folder, epoch):
    """Writes the entries below a folder that is empty or absent."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in layout.parents(entries):
        (folder / path).mkdir()
    for entry in entries:
        path = folder / entry.path
        if entry.link is not None:
            path.symlink_to(entry.link)
            continue
        path.write_bytes(entry.data)
        path.chmod(entry.mode)
    settle(folder, epoch)


def settle(folder, epoch):
    """Gives every folder its mode and everything the commit's time."""
    for top, _, names in os.walk(folder, topdown=False):
        for name in names:
            os.utime(os.path.join(top, name), (epoch, epoch), follow_symlinks=False)
        os.chmod(top, 0o755)
        os.utime(top, (epoch, epoch))


def script(root, name, lib):
    """Returns one of the scripts, for the folder of libraries of this kind of package."""
    return (root / "deploy/packaging/scripts" / name).read_text().replace("@LIB@", "/" + lib)
