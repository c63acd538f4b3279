"""Prints the settings that make NCCL use the network plugin of this package.

usage: python -m tcpx [--shell | --json] [--profiler]

exit codes: 0 done; 1 a library is missing, or NCCL can't load it from where it is; 2 wrong use
"""

import argparse
import json
import shlex
import sys

from tcpx import __version__, exports


def _parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tcpx",
        description="Prints the settings that make NCCL use the network plugin libnccl-net-tcpx.",
        epilog="In a script, tcpx.enable() sets them. Exit codes: 0 done; 1 a library is missing, or NCCL can't load "
        "it from where it is; 2 wrong use.",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--shell", action="store_true", help='lines for a shell: eval "$(python -m tcpx --shell)"')
    form.add_argument("--json", action="store_true", help="one JSON object, {name: value}")
    parser.add_argument("--profiler", action="store_true", help="load the profiler as well (NCCL 2.27 and later)")
    parser.add_argument("--version", action="version", version="nccl-net-tcpx " + __version__)
    return parser


def main() -> None:
    """Prints what was asked for; without an option the help and where the plugin is."""
    parser = _parser()
    given = parser.parse_args()
    try:
        variables = exports(given.profiler)
    except RuntimeError as error:
        sys.exit("tcpx: %s" % error)
    if given.shell:
        for name, value in variables.items():
            print("export %s=%s" % (name, shlex.quote(value)))
    elif given.json:
        print(json.dumps(variables, indent=1))
    else:
        parser.print_help()
        print("\nThe plugin is " + variables["NCCL_NET_PLUGIN"])


if __name__ == "__main__":
    main()
