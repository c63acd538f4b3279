#!/bin/bash
# join_test: connects that fail, between hosts: every rank that has a connection gets an error, every rank that waits
# logs early what hinders it, and none hangs.
#
# The bounds are short here: two tries, each of two seconds at most.
set -euo pipefail
source common/netns/lab.sh
source tests/netns/ring.sh
netns_enter_each "$0" refusals dropped some moved
ring_rank=tests/netns/join_rank
short=(NCCL_SOCKET_RETRY_CNT=1 NCCL_SOCKET_RETRY_SLEEP_MSEC=50 TCPX_HELLO_TIMEOUT=2)
first_syn='tcp flags & (syn|ack) == syn'

netns_switch s
netns_add a b c d
number=0
for host in a b c d; do netns_plug "$host" eth0 s "10.1.0.$((++number))"; done
# Each SYN gets its ICMP error, also where many come at once.
netns_run c sysctl -qw net.ipv4.icmp_ratelimit=0

# no_errno NAME: a connect that is still under way is no error to show.
no_errno() {
  ! grep -i 'in progress' "$scratch/$1"/log.* || fail "$1: a log shows EINPROGRESS"
}

# told NAME RANK REGEX: the rank has said so, once.
told() {
  local log=$scratch/$1/log.$2.0 count
  count=$(grep -cE "^WARN.*$3" "$log" || true)
  [[ $count == 1 ]] || fail "$1: rank $2 said /$3/ $count times, not once" "$log"
}

# both_fail NAME
both_fail() {
  local rank
  for rank in 0 1; do ended "$1" "$rank" error '^WARN' || true; done
}

# all_fail NAME: each of four gets an error and warns once; a peer of one that failed first logs what it heard. One that
# had to wait on a slow machine has said so.
all_fail() {
  local rank expects='no peer has come for 5 s'
  for rank in 0 1 2 3; do
    ended "$1" "$rank" error '^WARN' && warnings "$1" "$rank" 1
  done
}

refusals() {
  local how name secret
  # One rank rejects who dials it: the whole ring hears of it, once each, and not once for each of four channels.
  for how in 'tcp reset' 'icmpx type admin-prohibited'; do
    name="reject ${how// /-}"
    netns_reject c "$how" "$first_syn"
    start "$name" "a b c d" "${short[@]}" && {
      all_fail "$name"
      told "$name" 1 'connect to 10[.]1[.]0[.]3:[0-9]+ through eth0 [(]10[.]1[.]0[.]2[)]: .*(refused|unreachable|No route)'
      finish "$name" 0 1 2 3
    }
    netns_calm c
  done

  # One secret is wrong: its neighbours are refused, and the others hear of it.
  umask 077
  for secret in right wrong; do (umask 077; head -c 24 /dev/urandom | base64 >"$scratch/$secret"); done
  start secret "a b c d" "${short[@]}" "TCPX_SECRET_FILE=$scratch/right" "2:TCPX_SECRET_FILE=$scratch/wrong" && {
    all_fail secret
    told secret 1 'connect to 10[.]1[.]0[.]3:.*secret'
    finish secret 0 1 2 3
  }
}

# SYNs vanish one way: the dialler says so after 5 s, and so does who waits for it; then both end.
dropped() {
  netns_drop b "$first_syn"
  start dropped "a b" NCCL_SOCKET_RETRY_CNT=4 TCPX_HELLO_TIMEOUT=2 || return 0
  both_fail dropped
  told dropped 0 'connect to 10[.]1[.]0[.]2:[0-9]+ through eth0 [(]10[.]1[.]0[.]1[)]: no progress for 5 s, try [0-9] of 5: .*firewall.*TCPX_PORT_RANGE'
  told dropped 1 'accept on 10[.]1[.]0[.]2:[0-9]+ [(]eth0[)]: no peer has come for 5 s.*firewall.*NAT.*TCPX_PORT_RANGE'
  no_errno dropped
  finish dropped 0 1
}

# One lane comes through and the others don't, as behind a NAT that is short of ports: both sides count what is there.
some() {
  # Not "the first SYN and no other": on a busy machine the first one's try may be over before anybody has answered it.
  # From the first answer on (84 bytes at least, what has none is shorter) who got it is heard no more.
  netns_table b
  netns_nft b 'add set inet netns answered { type ipv4_addr; flags dynamic; size 16; }'
  netns_nft b 'add rule inet netns counters_out tcp sport 41000-41009 meta length > 80 add @answered { ip daddr }'
  netns_drop b "$first_syn ip saddr @answered"
  start some "a b" NCCL_SOCKET_RETRY_CNT=2 TCPX_HELLO_TIMEOUT=4 JOIN_CHANNELS=1 \
    1:TCPX_PORT_RANGE=41000-41009 || return 0
  both_fail some
  # Where it is asked late, what came has been closed meanwhile.
  told some 1 'accept on 10[.]1[.]0[.]2:[0-9]+ [(]eth0[)]: (1 of 3 )?lanes from 10[.]1[.]0[.]1:[0-9]+ have come,.* and no more for 5 s'
  no_errno some
  finish some 0 1
}

# The address that a rank listens on moves before its peer dials.
moved() {
  start moved "a b" NCCL_SOCKET_RETRY_CNT=4 TCPX_HELLO_TIMEOUT=2 JOIN_WAITS=1 1:JOIN_DIALS=0 || return 0
  ip -n b address delete 10.1.0.2/24 dev eth0
  netns_address b eth0 10.1.0.99
  touch "$scratch/moved/go"
  both_fail moved
  told moved 0 'connect to 10[.]1[.]0[.]2:[0-9]+ through eth0 [(]10[.]1[.]0[.]1[)]: no progress for 5 s'
  told moved 1 'accept on 10[.]1[.]0[.]2:[0-9]+ [(]eth0[)]: this host has lost the address, so that no peer can come: was the interface set up anew[?]$'
  no_errno moved
  finish moved 0 1
}

netns_case
