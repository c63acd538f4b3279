#!/bin/bash
# exports_test: a plugin exports the tables that NCCL looks up and nothing else.
#
# usage: exports_test.sh LIBRARY TABLE...
#
# A symbol too many binds to another library of the training process (PyTorch brings its own libstdc++ and Abseil).
# Which libraries a plugin needs: //tests/build:glibc_test.
set -euo pipefail

so=$1
shift
failed=0

expect_equal() {
  [[ $2 != "$3" ]] || return 0
  printf 'FAILED: %s\n--- expected\n%s\n--- found\n%s\n' "$1" "$2" "$3"
  failed=1
}

want_exports=$(printf '%s\n' "$@" | sort)
# "A" is the version node itself.
exports=$(nm -D --defined-only --extern-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
expect_equal "exported symbols" "$want_exports" "$exports"

# NCCL reads them as data.
kinds=$(nm -D --defined-only --extern-only "$so" | awk '$2 != "A" && $2 !~ /^[DRB]$/')
expect_equal "exports that are no data" "" "$kinds"

# Thread-local storage with destructors would outlive dlclose.
expect_equal "symbols that register thread-local destructors" "" \
  "$(nm -D --undefined-only "$so" | grep -E '__cxa_thread_atexit' || true)"

exit "$failed"
