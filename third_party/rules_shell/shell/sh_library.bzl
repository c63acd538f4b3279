"""Offline stand-in for rules_shell: forwards to the rule built into Bazel 4."""

sh_library = native.sh_library
