#!/bin/bash
# check_symbols: do libraries and programs load with every glibc from 2.28 on, the one of RHEL 8 and Debian 10, and need
# nothing else?
#
# usage: check_symbols.sh FILE...
#
# The tag manylinux_2_28 of a wheel promises less: it allows libstdc++ too. //tests/build:glibc_test runs this on what
# is built for this machine, wheel.py on what it packs for any processor.
#
# The loader refuses a library that needs a version of a symbol which its glibc does not have; NCCL then goes on without
# the plugin. What needs such a version is printed: common/older_glibc.cc is where it gets an older one. A version that
# is not glibc's (GLIBCXX, GCC) is one too many: libstdc++ and libgcc are inside. A needed library that is no part of
# glibc is missing in somebody's container.
#
# exit code: 0 they do; 1 one does not
set -euo pipefail

newest=2.28
failed=0

# Is a version of a symbol one of glibc's, and not above $newest?
old_enough() {
  [[ $1 =~ ^GLIBC_([0-9.]+)$ ]] &&
    [[ $(printf '%s\n' "$newest" "${BASH_REMATCH[1]}" | sort -V | tail -1) == "$newest" ]]
}

# Prints the lines NAME@VERSION of its input whose version is not. Hundreds of symbols have a dozen versions.
too_new() {
  local line version
  local -A known=()
  while read -r line; do
    version=${line#*@}
    [[ ${known[$version]:-} ]] || { if old_enough "$version"; then known[$version]=1; else known[$version]=0; fi; }
    ((known[$version])) || echo "$line"
  done
}

expect_none() {
  [[ -n $2 ]] || return 0
  printf 'FAILED: %s\n%s\n' "$1" "$2"
  failed=1
}

# Does the comparison tell them apart?
[[ $(printf '%s\n' a@GLIBC_2.2.5 b@GLIBC_2.28 c@GLIBC_2.29 d@GLIBC_2.3 e@GLIBC_PRIVATE f@GLIBCXX_3.4 | too_new |
  tr '\n' ' ') == 'c@GLIBC_2.29 e@GLIBC_PRIVATE f@GLIBCXX_3.4 ' ]] ||
    { echo "FAILED: versions compared wrongly"; exit 1; }

check() {
  local file=$1 symbols needs libraries library
  symbols=$(readelf --dyn-syms --wide "$file" | awk '$7 == "UND" && $8 ~ /@/ { sub(/@@/, "@", $8); print $8 }')
  [[ $symbols == *malloc@GLIBC_* ]] || { echo "FAILED: no versions read from $file"; exit 1; }
  expect_none "$file: symbols newer than GLIBC_$newest" "$(too_new <<<"$symbols")"

  # What the loader checks before it looks at a single symbol.
  needs=$(readelf --version-info --wide "$file" |
    awk '/Version needs/ { on = 1 } on && /Name:/ { print "needs@" $3 }')
  [[ $needs == *@GLIBC_* ]] || { echo "FAILED: no needed version read from $file"; exit 1; }
  expect_none "$file: needed versions above GLIBC_$newest" "$(too_new <<<"$needs")"

  libraries=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  expect_none "$file: needs libraries other than glibc's" \
    "$(grep -vxE 'lib(c|m)\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux-(x86-64\.so\.2|aarch64\.so\.1)' \
      <<<"$libraries" || true)"

  # Without them an old glibc has no threads, unless the process has loaded them already.
  for library in libpthread.so.0 libdl.so.2; do
    grep -qxF "$library" <<<"$libraries" || expect_none "$file: a library is not named" "$library"
  done
}

(($# > 0)) || { echo "FAILED: no file to look at"; exit 1; }
for file in "$@"; do check "$file"; done
exit "$failed"
