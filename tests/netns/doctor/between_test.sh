#!/bin/bash
# between_test: two hosts whose way to each other is broken in one way, and the doctor names it.
#
# environment: TCPX_TEST_LONG=1  also limits of speed, whose streams take long
set -euo pipefail
source common/netns/lab.sh
source tests/netns/doctor/doctor.sh
netns_enter_each "$0" sound_hosts firewalls sizes_and_marks addresses secrets speeds strangers

netns_pair eth0 10.1.0.
netns_settled a eth0
netns_settled b eth0

# listener NAME=VALUE...: a listening doctor on b; the one before it ends.
listener() {
  listener_ends
  rm -f "$scratch/input" && mkfifo "$scratch/input"
  launch doctor listener b "${as_installed[@]}" "$@" -- bash -c 'exec "$@" <"$0"' "$scratch/input" \
    "$doctor" listen --until-eof
  exec 9>"$scratch/input"
  await grep -q listening "$scratch/doctor/listener.log" || fail "no listening doctor" "$scratch/doctor/listener.log"
}
listener_ends() {
  local rc=0
  exec 9>&- || true
  [[ -z ${pid[doctor.listener]:-} ]] || wait "${pid[doctor.listener]}" || rc=$?
  ((rc == 0)) || fail "the listening doctor ends with $rc"
}

sound_hosts() {
  examine a 10.1.0.2 && broken "nobody listens" reach "10.1.0.2 port 17617: no doctor answers.*refused"
  listener
  examine a 10.1.0.2 --ms 200 && sound "two sound hosts"
  finds "two sound hosts" ok pair "eth0 10.1.0.1 to eth0 10.1.0.2: reachable, round trip"
  finds "two sound hosts" ok mtu "1500 bytes pass"
  finds "two sound hosts" ok mark "dscp 46 is kept in both directions"
  finds "two sound hosts" ok clock "clock is"
  finds "two sound hosts" ok secret "neither host"
  finds "two sound hosts" ok variable "both hosts have the same parameters"
  finds "two sound hosts" ok flow "the plugin connects"
  finds "two sound hosts" ok flow "16 flows: [0-9]+ Mbit/s out, [0-9]+ in"
  finds "two sound hosts" "(ok|note)" setting "."
  examine a nosuch.invalid && broken "an unknown name" reach "nosuch.invalid"
  ask "$doctor" 10.1.0.2 --port 0
  ((code == 2)) || not_so "port 0: exit code $code"
}

# Without --ms only what is asked of each pair.
firewalls() {
  listener
  netns_drop b tcp dport 17617
  examine a 10.1.0.2 --ms 0 && broken "the doctor's port is blocked" reach "no answer in time"
  netns_heal b
  netns_drop b meta l4proto udp
  examine a 10.1.0.2 --ms 0 && finds "UDP is blocked" note mtu "UDP does not pass"
  netns_heal b
  netns_drop b tcp dport != 17617 tcp flags syn
  examine a 10.1.0.2 --ms 200 && broken "the plugin's ports are blocked" flow "the plugin does not connect"
  fixed_by "the plugin's ports are blocked" flow "TCPX_PORT_RANGE"
  netns_heal b
}

sizes_and_marks() {
  listener
  ip -n b link set eth0 mtu 9000
  examine a 10.1.0.2 --ms 0 && broken "the mtu differs" mtu "interfaces have 1500 and 9000.*differs"
  ip -n b link set eth0 mtu 1500
  netns_drop b meta length 1401-65535
  examine a 10.1.0.2 --ms 0 && broken "large packets vanish" mtu "1400 bytes pass.*dropped silently"
  # What does not connect, or stalls, for this reason is said once, and blames no firewall.
  examine a 10.1.0.2 --ms 200 TCPX_PEER_TIMEOUT=2 && fixed_by "large packets vanish" flow "what the line about mtu says"
  (($(grep -c '^problem  *flow ' <<<"$said") == 1)) ||
    not_so "large packets vanish: the streams' problem is there twice"
  netns_heal b

  netns_nft b 'add table inet wash'
  netns_nft b 'add chain inet wash in { type filter hook prerouting priority -150; }'
  netns_nft b 'add rule inet wash in ip dscp set cs0'
  examine a 10.1.0.2 --ms 0 && finds "a mark that nobody set is washed" note mark "dscp 46 is changed on the path there"
  examine a 10.1.0.2 --ms 0 TCPX_TRAFFIC_CLASS=af21 &&
    broken "the mark is washed" mark "dscp 18 is changed on the path there"
}

addresses() {
  local host
  # Another interface in the subnet, which nobody chose.
  ip -n b link add twin0 type veth peer name twin1 && ip -n b link set twin0 up && ip -n b link set twin1 up
  netns_address b twin0 10.1.0.7 && netns_settled b twin0
  netns_run b sysctl -qw net.ipv4.conf.all.rp_filter=1
  listener NCCL_SOCKET_IFNAME=eth0
  examine a 10.1.0.2 --ms 0 &&
    broken "two interfaces in one subnet there" pair "eth0 10.1.0.2 and twin0 are in one subnet.*rp_filter=1"
  fixed_by "two interfaces in one subnet there" pair "rp_filter=2"
  ip -n b link delete twin0
  for host in a b; do
    ip -n $host link add dup0 type bridge && ip -n $host link set dup0 up && netns_address $host dup0 10.9.9.9
  done
  ip -n b link add port0 type veth peer name port1 && ip -n b link set port0 master dup0 up && ip -n b link set port1 up
  netns_settled b dup0
  listener
  examine a 10.1.0.2 --ms 0 &&
    broken "one address on both hosts" address "10.9.9.9 is on both hosts: they would dial themselves"
  broken "an interface that does not lead there" pair "eth0 10.1.0.1 to dup0 10.9.9.9: not reachable"
  # No subnet is shared, and rp_filter=1 may be why.
  broken "rp_filter=1 without a shared subnet" pair "not reachable.*rp_filter=1 (there|at both ends) drops"
  fixed_by "rp_filter=1 without a shared subnet" pair "rp_filter=2 on that host; ip route get"
}

secrets() {
  (umask 077; printf 'the secret of this host' >"$scratch/here"; printf 'the secret of that host' >"$scratch/there")
  chmod 600 "$scratch/here" "$scratch/there"
  listener TCPX_SECRET_FILE="$scratch/there"
  examine a 10.1.0.2 --ms 0 TCPX_SECRET_FILE="$scratch/there" && sound "the same secret"
  finds "the same secret" ok secret "both hosts have the same secret"
  examine a 10.1.0.2 --ms 0 TCPX_SECRET_FILE="$scratch/here" &&
    broken "another secret" secret "secrets of the two hosts differ"
  finds "another secret" note flow "no streams were tried"
  examine a 10.1.0.2 --ms 0 && broken "no secret here" secret "only the other host"
  listener
  examine a 10.1.0.2 --ms 0 TCPX_SECRET_FILE="$scratch/here" && broken "no secret there" secret "only this host"
  listener TCPX_SECRET_FILE="$scratch/there" TCPX_ENCRYPT=1
  examine a 10.1.0.2 --ms 200 TCPX_SECRET_FILE="$scratch/there" TCPX_LANES=3 &&
    broken "only the other host encrypts" variable "TCPX_ENCRYPT is off here and on there"
  fixed_by "only the other host encrypts" variable "set TCPX_ENCRYPT to the same value"
  finds "other parameters" note variable "TCPX_LANES is 3 here and auto there"
  finds "only the other host encrypts" note flow "no streams were tried"
}

speeds() {
  ((${TCPX_TEST_LONG:-0} == 1)) || return 0
  listener
  netns_limit_flows b 4000
  netns_limit_flows a 4000
  examine a 10.1.0.2 --ms 10000 && finds "a limit for each flow" note flow "a flow is limited to about [0-9]+ Mbit/s"
  finds "a limit for each flow" note setting "16 bring [0-9]+ Mbit/s"
  grep -q 'fix: export TCPX_LANES=17' <<<"$said" || not_so "a limit for each flow: no TCPX_LANES=17"
  netns_heal a && netns_heal b
  netns_shape b eth0 40mbit
  examine a 10.1.0.2 --ms 500 && finds "one direction is shaped" note flow "the directions differ"
}

# say_as_stranger SECONDS WORDS: and what is answered.
say_as_stranger() {
  netns_run a timeout "$1" bash -c "exec 3<>/dev/tcp/10.1.0.2/17617; echo '$2' >&3; head -c 4096 <&3" || true
}

# What strangers say.
strangers() {
  local word
  listener
  # It waits for the stream that the first asks for; who has asked does not.
  say_as_stranger 2 'tcpx_doctor 1 stream lanes=99999 device=-1 ms=x' >/dev/null
  for word in 'GET / HTTP/1.0' 'tcpx_doctor 1 nosuch'; do say_as_stranger 60 "$word" >"$scratch/answer"; done
  grep -q '^error unknown question' "$scratch/answer" || fail "an unknown question" "$scratch/answer"
  examine a 10.1.0.2 --ms 0 && sound "after strangers"
}

$NETNS_CASE
listener_ends
doctor_end
