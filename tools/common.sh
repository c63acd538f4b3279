# common.sh: what the scripts in tools/ share. Sourced with the root of the project as the working directory.

cache_dir=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tcpx-tools
buildifier_version=8.2.1
buildifier=$cache_dir/npm/node_modules/.bin/buildifier

say() { echo "tcpx: $*" >&2; }

# Prints the comment that a script begins with, as its --help.
usage_of() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$1"; }

# Prints the version of these sources.
version_of() { echo "$1 $(sed -n 's/.*kVersion\[\] = "\(.*\)";/\1/p' common/build_info.h) (from the sources)"; }

# Runs a command and shows what it printed only if it fails.
run_quietly() {
  local log rc=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  ((rc == 0)) || { cat "$log" >&2; say "failed (exit $rc): $*"; }
  rm -f "$log"
  return "$rc"
}

# Bazel without its progress display where nobody watches.
bazel_options=(--noshow_progress --color=no)
[[ ! -t 2 ]] || bazel_options=()

cpp_files() {
  find . -name '.?*' -prune -o -path ./third_party/distdir -prune -o -path './bazel-*' -prune -o \
    -type f \( -name '*.h' -o -name '*.cc' \) -print | sort
}

build_files() {
  find . -name '.?*' -prune -o -path ./third_party/distdir -prune -o -path './bazel-*' -prune -o \
    -type f \( -name BUILD.bazel -o -name '*.BUILD' -o -name '*.bzl' -o -name WORKSPACE \) -print | sort
}
