#!/bin/bash
# older_kernels_test: random traffic through the whole plugin, with the sets of io_uring's setup flags that older
#                     kernels
# take (docs/kernels.md).
set -euo pipefail

for rung in 1 2 3; do
  echo "rung $rung"
  TCPX_TEST_URING_RUNG=$rung tests/plugin/traffic/random_traffic_test --gtest_filter='EveryMode/*io_uring*'
done
