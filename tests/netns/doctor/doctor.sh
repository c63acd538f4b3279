# doctor.sh: broken set-ups, and whether the doctor names what is wrong. To be sourced behind netns.sh.
#
#   examine HOST [NAME=VALUE|OPTION...]     runs it there; what it says is in $said, its exit code in $code
#   finds NAME GRADE CHECK REGEX            one line of it has this grade and check and matches
#   broken NAME CHECK REGEX                 the same for a problem: exit code 1, and behind it what mends it
#   sound NAME                              no problem, exit code 0
#   carrier HOST DEVICE                     waits until the kernel has seen that the cable is in
#
# Threads: none. Errors: counted in `failures`, with all that was said.

doctor=$PWD/tools/doctor/tcpx_doctor
failures=0
cases=0
[[ ${NETNS_INSIDE:-} != 1 ]] || {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch" || true' EXIT
}
# Words in front of the doctor: a wrapper.
wrapper=()

fail() {
  echo "FAILED: $*"
  echo "$said"
  failures=$((failures + 1))
}

carrier() {
  local end=$((SECONDS + 60))
  until [[ $(ip -n "$1" -br link show dev "$2") == *LOWER_UP* && $(ip -n "$1" -br link show dev "$2") == *' UP '* ]]; do
    ((SECONDS < end)) || { fail "$2 of $1 does not come up"; return 0; }
    sleep 0.02
  done
}

examine() {
  local host=$1 word set=() options=()
  shift
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z_]+= ]]; then set+=("$word"); else options+=("$word"); fi
  done
  [[ " ${options[*]} " == *' --nccl '* ]] || options+=(--nccl "$PWD/tests/netns/doctor/libnccl-stand-in.so")
  code=0
  said=$(netns_run "$host" env HOME="$scratch" LD_LIBRARY_PATH="$PWD/net_socket" NCCL_NET_PLUGIN=tcpx NCCL_NET=tcpx \
    LOCAL_WORLD_SIZE=1 "${set[@]}" "${wrapper[@]}" "$doctor" "${options[@]}" 2>&1) || code=$?
}

finds() {
  local line
  cases=$((cases + 1))
  line=$(grep -Em1 "^$2 +$3 .*($4)" <<<"$said") || { fail "$1: no $2 of $3 that matches $4"; return 0; }
  echo "$1: $line"
}

broken() {
  local before=$failures
  finds "$1" problem "$2" "$3"
  ((failures == before)) || return 0
  ((code == 1)) || fail "$1: exit code $code"
  grep -EA1 "^problem +$2 .*($3)" <<<"$said" | grep -q ' mend: ' || fail "$1: nothing that mends it"
}

sound() {
  cases=$((cases + 1))
  ((code == 0)) || fail "$1: exit code $code"
  ! grep -q '^problem' <<<"$said" || fail "$1: a problem"
  grep -q ' 0 problems$' <<<"$said" || fail "$1: no summary"
}
