"""Offline stand-in for rules_shell: forwards to the rule built into Bazel 4."""

sh_binary = native.sh_binary
