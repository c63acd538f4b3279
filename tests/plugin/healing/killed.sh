#!/bin/bash
# killed.sh TEST [ARGUMENTS]: a test of the plugin, unchanged, while the sockets of its lanes die, every
# TCPX_TEST_KILL_US. In a network of its own where that may be had, so that the kernel can be asked to kill.
set -euo pipefail

export TCPX_TEST_KILL_US=${TCPX_TEST_KILL_US:-2000} TCPX_HEAL=1 NCCL_SOCKET_RETRY_SLEEP_MSEC=1
if [[ -n ${TCPX_TEST_WITH_SECRET:-} ]]; then
  export TCPX_SECRET_FILE=$TEST_TMPDIR/secret
  (umask 077 && head -c 32 /dev/urandom | base64 > "$TCPX_SECRET_FILE")
fi
if unshare --map-root-user --net ip link set lo up 2> /dev/null; then
  export TCPX_TEST_OWN_NETWORK=1
  exec unshare --map-root-user --net bash -c 'ip link set lo up && exec "$@"' killed "$@"
fi
exec "$@"
