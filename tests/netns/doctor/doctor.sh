# doctor.sh: broken set-ups, and whether the doctor names what is wrong. To be sourced after lab.sh.
#
#   examine HOST [NAME=VALUE|OPTION...]     runs it there; what it says is in $said, its exit code in $code
#   finds NAME GRADE CHECK REGEX            one line of it has this grade and check and matches
#   broken NAME CHECK REGEX                 the same for a problem: exit code 1, and a fix after it
#   fixed_by NAME CHECK REGEX               the fix below it matches
#   sound NAME                              no problem, exit code 0
#   wrong ARGUMENT...                       wrong usage: exit code 2
#
# Threads: none. Errors: counted in `failures`, with all that was said.
# shellcheck shell=bash

doctor=$PWD/tools/doctor/tcpx_doctor
cases=0
# Words in front of the doctor: a wrapper.
wrapper=()
as_installed=(HOME="${scratch:-}" LD_LIBRARY_PATH="$PWD/net_socket" NCCL_NET_PLUGIN=tcpx NCCL_NET=tcpx
  LOCAL_WORLD_SIZE=1)

# ask COMMAND...
ask() {
  code=0
  said=$("$@" 2>&1) || code=$?
}

not_so() { fail "$1" - <<<"$said"; }

examine() {
  local host=$1 word set=() options=()
  shift
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z_]+= ]]; then set+=("$word"); else options+=("$word"); fi
  done
  [[ " ${options[*]} " == *' --nccl '* ]] || options+=(--nccl "$PWD/tests/netns/doctor/libnccl-stand-in.so")
  ask netns_run "$host" env "${as_installed[@]}" "${set[@]}" "${wrapper[@]}" "$doctor" "${options[@]}"
}

finds() {
  local line
  cases=$((cases + 1))
  line=$(grep -Em1 "^$2 +$3 .*($4)" <<<"$said") || { not_so "$1: no $2 of $3 that matches $4"; return 0; }
  echo "$1: $line"
}

broken() {
  local before=$failures
  finds "$1" problem "$2" "$3"
  ((failures == before)) || return 0
  ((code == 1)) || not_so "$1: exit code $code"
  [[ $(grep -EA1 "^problem +$2 .*($3)" <<<"$said") == *' fix: '* ]] || not_so "$1: nothing that fixes it"
}

# fixed_by NAME CHECK REGEX: some line of this check, note or problem, is followed by a fix that matches.
fixed_by() {
  grep -EA1 "^(note|problem) +$2 " <<<"$said" | grep -Eq "^ +fix: .*($3)" || not_so "$1: no fix of $2 that matches $3"
}

sound() {
  cases=$((cases + 1))
  ((code == 0)) || not_so "$1: exit code $code"
  ! grep -q '^problem' <<<"$said" || not_so "$1: a problem"
  grep -q ' 0 problems$' <<<"$said" || not_so "$1: no summary"
}

wrong() {
  ask "$doctor" "$@"
  ((code == 2)) || not_so "wrong use $*: exit code $code"
}

doctor_end() {
  echo "$cases cases, $failures failures"
  netns_end
}
