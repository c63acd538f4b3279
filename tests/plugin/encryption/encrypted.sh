#!/bin/bash
# encrypted.sh TEST [ARGUMENTS]: a test of the plugin, unchanged, with TCPX_ENCRYPT=1 on all sides; it fails where the
# plugin does not say that it encrypts.
set -euo pipefail

export TCPX_ENCRYPT=1 TCPX_TEST_MUST_ENCRYPT=1 TCPX_SECRET_FILE=$TEST_TMPDIR/secret
(umask 077 && head -c 32 /dev/urandom | base64 > "$TCPX_SECRET_FILE")
exec "$@"
