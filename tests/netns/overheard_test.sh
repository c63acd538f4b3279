#!/bin/bash
# overheard_test: somebody with tcpdump on the cable between two hosts. With TCPX_ENCRYPT no block of 8 bytes of what
#                 the
# ranks tell each other is in his capture, and so no 16 in a row; without it nearly all are, so that he could have found
# them.
#
# environment: TCPX_TEST_LONG=1  every mode and cipher
set -euo pipefail
source common/netns/lab.sh
NETNS_OUTER_USERS=1 netns_enter "$0" "$@"
netns_require tcpdump

netns_pair eth0 10.1.0.
# The bytes for teller's four variants of sending; one sends groups of three.
head -c 9500000 /dev/urandom >"$scratch/secrets"
(umask 077 && head -c 32 /dev/urandom | base64 >"$scratch/key")

ear_settled() { has_ended "$1" ear || grep -q 'listening on' "$scratch/$1/ear.log"; }

# overheard NAME ENVIRONMENT...: two ranks talk, and what was heard lies in $scratch/NAME/heard.
overheard() {
  local name=$1 folder=$scratch/$1
  shift
  # -Z: it would become another user, who may not write here.
  launch "$name" ear a -- tcpdump -i eth0 -s 0 -B 262144 -Z root -w "$folder/heard"
  await ear_settled "$name"
  grep -q 'listening on' "$folder/ear.log" || netns_skip "tcpdump may not listen here: $(tail -n 1 "$folder/ear.log")"
  local own=(NCCL_SOCKET_IFNAME=eth0 TCPX_LANES=3 TCPX_MAX_RECVS=8 TCPX_GPU_DIRECT_STAGING=1 TCPX_LINGER=1
    TCPX_TEST_GPU_SLOT_BYTES=64K TCPX_GPU_POOL_BYTES=1M "TCPX_SECRET_FILE=$scratch/key" "$@")
  launch "$name" a a "${own[@]}" -- tests/netns/teller tell "$folder" one other "$scratch/secrets"
  launch "$name" b b "${own[@]}" -- tests/netns/teller tell "$folder" other one "$scratch/secrets"
  ended_well "$name" a b || fail "$name: the ranks"
  # What it has heard and not written yet, it writes first.
  kill -TERM "${pid[$name.ear]}" && wait "${pid[$name.ear]}" || true
}

# sealed NAME, heard NAME: what tcpdump has of it.
sealed() {
  local found who
  found=$(tests/netns/teller count "$scratch/secrets" "$scratch/$1/heard")
  echo "$1: $(stat -c %s "$scratch/$1/heard") bytes heard, $found blocks of 8 of them plain"
  ((found == 0)) || fail "$1: what was heard has $found blocks of what was sent"
  for who in a b; do logged "$1" "$who" 'every socket is encrypted'; done
  # Both directions, and a little more: the capture has lost next to nothing.
  (($(stat -c %s "$scratch/$1/heard") > 2 * 5 * 1000 * 1000)) || fail "$1: tcpdump was too slow"
}
heard() {
  local found
  found=$(tests/netns/teller count "$scratch/secrets" "$scratch/$1/heard")
  echo "$1: $(stat -c %s "$scratch/$1/heard") bytes heard, $found blocks of 8 of them plain"
  ((found > 1000 * 1000)) || fail "$1: what was heard has only $found blocks of what was sent"
}

overheard clear TCPX_ENCRYPT=0 TCPX_THREADS=0
heard clear
modes=("TCPX_THREADS=0" "TCPX_THREADS=2 TCPX_ENGINE=io_uring")
((${TCPX_TEST_LONG:-0} == 1)) && modes+=(
  "TCPX_THREADS=2 TCPX_ENGINE=epoll"
  "TCPX_THREADS=2 TCPX_ENGINE=io_uring TCPX_ZEROCOPY=on"
  "TCPX_THREADS=0 TCPX_ENCRYPT_CIPHER=aes128-gcm"
  "TCPX_THREADS=0 TCPX_ENCRYPT_CIPHER=chacha20-poly1305"
)
for mode in "${modes[@]}"; do
  # shellcheck disable=SC2086
  overheard "${mode//[^a-z0-9]/}" TCPX_ENCRYPT=1 $mode
  sealed "${mode//[^a-z0-9]/}"
done
netns_end
