#include "tools/doctor/command.h"

namespace tcpx {
namespace doctor {

const char* UsageText() {
  return R"(tcpx_doctor: what the plugin would do here, and what stands in its way

usage: tcpx_doctor [OPTION...]             this machine, or this container

  --ranks N      judge for N ranks on this host (default: what the launcher's variables say, else 1)
  --gpus N       GPUs of one rank's process (default 1)
  --rtt-us N     round trip to the other hosts in microseconds, for the buffers (default 500)
  --plugin FILE  this library instead of the one that NCCL would find
  --nccl FILE    this NCCL instead of the loader's libnccl.so.2 (PyTorch brings its own)
  --json         one JSON object instead of lines
  --quiet        leave out what is ok
  --version      version and build
  -h, --help     this text

Run it where the job runs: in the same container, by the same launcher, with the same variables. It needs no root.

Each line is ok, note or problem, a word that says of what, and what is so; below a note or a problem stands what
mends it. docs/doctor.md explains every line.

exit code: 0 no problem; 1 a problem; 2 wrong usage
)";
}

}  // namespace doctor
}  // namespace tcpx
