#!/bin/bash
# join_test: connects that come to nothing, between hosts: every rank that has a connection gets an error, whoever waits
# is told early what hinders, and nobody hangs.
#
# The bounds are short here: two tries, each of two seconds at most.
set -euo pipefail
source common/netns/netns.sh
source tests/netns/ring.sh
netns_enter "$0" "$@"
ring_rank=tests/netns/join_rank
short=(NCCL_SOCKET_RETRY_CNT=1 NCCL_SOCKET_RETRY_SLEEP_MSEC=50 TCPX_HELLO_TIMEOUT=2)
first_syn='tcp flags & (syn|ack) == syn'

# switched HOST...: with a link each to one switch, 10.1.0.1 and so on.
switched() {
  local ns i=0
  netns_add s "$@"
  ip -n s link add bridge type bridge
  ip -n s link set bridge up
  for ns in "$@"; do
    netns_link "$ns" eth0 s "port$((++i))"
    ip -n s link set "port$i" master bridge
    netns_address "$ns" eth0 "10.1.0.$i/24"
    netns_table "$ns"
  done
}

# told NAME RANK REGEX: the rank has said so, once.
told() {
  local count
  count=$(grep -cE "^WARN.*$3" "$scratch/$1/log.$2.0" || true)
  [[ $count == 1 ]] || { cat "$scratch/$1/log.$2.0"; fail "$1: rank $2 said /$3/ $count times, not once"; }
}

# errors NAME RANKS: each got an error and warned once; a peer of one that was told first says what it heard.
errors() {
  local rank
  for ((rank = 0; rank < $2; ++rank)); do
    ended "$1" "$rank" error '^WARN' && warnings "$1" "$rank" 1
  done
}

switched a b c d
# Each SYN gets its ICMP error, also where many come at once.
netns_run c sysctl -qw net.ipv4.icmp_ratelimit=0

# One rank rejects who dials it: the whole ring hears of it, once each, and not once for each of four channels.
for how in 'tcp reset' 'icmpx type admin-prohibited'; do
  name="reject ${how// /-}"
  netns_nft c "add rule inet netns losses $first_syn reject with $how"
  start "$name" "a b c d" "${short[@]}" && {
    errors "$name" 4
    told "$name" 1 'connect to 10[.]1[.]0[.]3:[0-9]+ through eth0 [(]10[.]1[.]0[.]2[)]: .*(refused|unreachable|No route)'
    finish "$name" 0 1 2 3
  }
  netns_nft c 'flush chain inet netns losses'
done

# One secret is wrong: its neighbours are refused, and the others hear of it.
umask 077
for secret in right wrong; do head -c 24 /dev/urandom | base64 >"$scratch/$secret"; done
start secret "a b c d" "${short[@]}" "0:TCPX_SECRET_FILE=$scratch/right" "1:TCPX_SECRET_FILE=$scratch/right" \
  "2:TCPX_SECRET_FILE=$scratch/wrong" "3:TCPX_SECRET_FILE=$scratch/right" && {
  errors secret 4
  told secret 1 'connect to 10[.]1[.]0[.]3:.*secret'
  finish secret 0 1 2 3
}

# SYNs vanish one way: the dialler says so after 5 s, and so does who waits for it; then both end.
netns_nft b "add rule inet netns losses $first_syn drop"
start dropped "a b" NCCL_SOCKET_RETRY_CNT=4 TCPX_HELLO_TIMEOUT=2 && {
  for rank in 0 1; do ended dropped "$rank" error '^WARN' || true; done
  told dropped 0 'connect to 10[.]1[.]0[.]2:[0-9]+ through eth0 [(]10[.]1[.]0[.]1[)]: no progress for 5 s, try [0-9] of 5: .*firewall.*TCPX_PORT_RANGE'
  told dropped 1 'accept on 10[.]1[.]0[.]2:[0-9]+ [(]eth0[)]: no peer has come for 5 s.*firewall.*NAT.*TCPX_PORT_RANGE'
  finish dropped 0 1
}
netns_nft b 'flush chain inet netns losses'

# One lane comes through and the others don't, as behind a NAT that is short of ports: both sides count what is there.
netns_nft b "add rule inet netns losses $first_syn limit rate over 1/hour burst 1 packets drop"
start some "a b" NCCL_SOCKET_RETRY_CNT=2 TCPX_HELLO_TIMEOUT=4 JOIN_CHANNELS=1 && {
  for rank in 0 1; do ended some "$rank" error '^WARN' || true; done
  told some 1 'accept on 10[.]1[.]0[.]2:[0-9]+ [(]eth0[)]: 1 of 3 lanes from 10[.]1[.]0[.]1:[0-9]+ have come, and no more for 5 s'
  finish some 0 1
}
netns_nft b 'flush chain inet netns losses'

# The address that a rank listens on moves before its peer dials.
start moved "a b" NCCL_SOCKET_RETRY_CNT=4 TCPX_HELLO_TIMEOUT=2 JOIN_WAITS=1 1:JOIN_DIALS=0 && {
  ip -n b address delete 10.1.0.2/24 dev eth0
  netns_address b eth0 10.1.0.99/24
  touch "$scratch/moved/go"
  for rank in 0 1; do ended moved "$rank" error '^WARN' || true; done
  told moved 0 'connect to 10[.]1[.]0[.]2:[0-9]+ through eth0 [(]10[.]1[.]0[.]1[)]: no progress for 5 s'
  told moved 1 'accept on 10[.]1[.]0[.]2:[0-9]+ [(]eth0[)]: this host has lost the address, so that no peer can come: was the interface set up anew[?]$'
  finish moved 0 1
}

exit $((failures > 0))
