#!/bin/bash
# bench_scripts_test: the benchmarks between namespaces say how they are used, and what is wrong with an option.
set -euo pipefail

failures=0

# expect SCRIPT RC TEXT ARGUMENT...: ends with RC and says TEXT.
expect() {
  local script=$1 rc=$2 text=$3 output got=0
  shift 3
  output=$(bash "bench/netns/$script.sh" "$@" 2>&1 </dev/null) || got=$?
  [[ $got == "$rc" && $output == *"$text"* ]] && return
  echo "FAILED: $script $*: exit code $got, not $rc, or not '$text': $output"
  failures=$((failures + 1))
}

for script in shaped fused qos lossy paths; do
  expect "$script" 0 "usage: $script.sh --plugin PATH" --help
  expect "$script" 2 "$script.sh: unknown option --bogus" --bogus 1
  expect "$script" 2 "$script.sh: --size needs a value" --size
done
expect shaped 2 "--flows-shaped takes" --plugin /dev/null --flows-shaped 100,fast
expect fused 2 "--links takes" --plugin /dev/null --links 100,
expect qos 2 "'much' is no number" --plugin /dev/null --rate much
expect qos 2 "two DSCPs" --plugin /dev/null --high 4 --low 7
expect paths 2 "--paths takes" --plugin /dev/null --paths 100,fast
expect paths 2 "one of --paths" --plugin /dev/null
expect lossy 2 "--loss takes" --plugin /dev/null --loss half
expect qos 2 "--plugin takes the path" --plugin /nowhere/tcpx.so
expect qos 2 "no net_bench found" --plugin /dev/null --net-bench /nowhere/net_bench

expect heal 0 "usage: heal.sh --plugin PATH" --help
expect heal 2 "heal.sh: unknown option --bogus" --bogus 1
expect heal 2 "--cases takes a list" --plugin /dev/null --cases fused,wrong
expect heal 2 "numbers are whole" --plugin /dev/null --seconds soon
expect heal 2 "--plugin takes the path" --plugin /nowhere/tcpx.so
expect heal 2 "no stream found" --plugin /dev/null --stream /nowhere/stream

expect wired 0 "usage: wired.sh --profile NAME" --help
expect wired 2 "wired.sh: unknown option --bogus" --bogus 1
expect wired 2 "--profile takes a name"
expect wired 2 "--flows takes" --profile rack --flows many
expect wired 2 "no net_bench found" --profile rack --net-bench /nowhere/net_bench -- --mode latency

((failures == 0)) || exit 1
echo "every script says what is wrong"
