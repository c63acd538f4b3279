#!/bin/bash
# hosts_test: the matrix of three hosts; one that is slow stands out, one that is away is named, and nothing stays.
#
# environment: TCPX_TEST_LONG=1  also what needs streams between all of them: hosts alike, and the slow one
set -euo pipefail
source common/netns/lab.sh
source tests/netns/doctor/doctor.sh
netns_enter "$0" "$@"

netns_switch s
netns_add a b c
number=0
for host in a b c; do
  netns_plug $host eth0 s 10.1.0.$((++number))
  netns_settled $host eth0
  # Slow enough that no host of the machine's own speed stands out by chance.
  netns_shape $host eth0 100mbit
  echo "$host 10.1.0.$number  # a host" >>"$scratch/hosts"
done

matrix() {
  code=0
  said=$("$doctor" --hosts "$scratch/hosts" --start 'ip netns exec {host}' --remote "env ${as_installed[*]} $doctor" \
    --ms 300 "$@" 2>"$scratch/errors") || code=$?
  said+=$'\n'$(cat "$scratch/errors")
}

matrix --ms 0 && sound "three hosts that are asked for no streams"
finds "three hosts that are asked for no streams" ok pair "3 pairs alike"
grep -q '^a  *\\\.\.$' <<<"$said" || not_so "three hosts: no picture"
if ((${TCPX_TEST_LONG:-0} == 1)); then
  matrix && sound "three hosts alike"
  finds "three hosts alike" ok pair "3 pairs alike"
  grep -Eq '^a +- +[0-9]+ +[0-9]+$' <<<"$said" || not_so "three hosts alike: no matrix"

  tc -n c qdisc delete dev eth0 root && netns_shape c eth0 25mbit
  matrix && broken "a slow host" host "c is unusual in all of its 2 pairs"
  broken "a slow host" pair "a and c: .*back [0-9]+ Mbit/s, where the median is"
  ! grep -q 'problem  *pair  *a and b' <<<"$said" || not_so "a slow host: a and b stand out too"
  tc -n c qdisc delete dev eth0 root && netns_shape c eth0 100mbit
fi

matrix --ms 0 --json
python3 -c 'import json, sys; r = json.loads(sys.stdin.read()); assert len(r["pairs"]) == 3 and r["problems"] == 0' \
  <<<"$said" || not_so "--json"
ip -n s link set c-eth0 down
echo "nosuch 10.1.0.9" >>"$scratch/hosts"
matrix --ms 0 && broken "a host that is away" host "c is unusual in all of its 2 pairs"
broken "a host that is away" pair "b and c: not reached"
broken "a host where nothing starts" host "nosuch: no doctor could be started"

for host in a b c; do
  [[ -z $(ip netns pids $host) ]] || fail "processes stay on $host: $(ip netns pids $host)"
done

echo 'a; reboot' >"$scratch/odd"
wrong hosts
wrong hosts /nowhere/hosts
wrong hosts "$scratch/odd"
echo one >"$scratch/one"
wrong hosts "$scratch/one"
doctor_end
