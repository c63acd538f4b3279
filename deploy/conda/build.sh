#!/bin/bash
# build.sh: installs the wheel that tools/package wrote into the environment that conda packs.
#
# conda sets PYTHON, SRC_DIR (a copy of the source's folder) and PKG_VERSION. Nothing is downloaded.
set -euo pipefail

"$PYTHON" -m pip install --no-index --no-deps --no-cache-dir --find-links "$SRC_DIR" "nccl-net-tcpx==$PKG_VERSION"
