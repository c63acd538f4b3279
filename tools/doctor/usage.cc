#include "tools/doctor/command.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr char kUsage[] =
    R"(tcpx_doctor: what the plugin would do here, and what would keep it from working

usage: tcpx_doctor [OPTION...]              this machine, or this container
       tcpx_doctor listen [OPTION...]       answers another doctor
       tcpx_doctor HOST [OPTION...]         this host and HOST, where
                                            tcpx_doctor listen runs
       tcpx_doctor --hosts FILE [OPTION...] all pairs of the hosts in FILE,
                                            "NAME [ADDRESS]" on each line
       tcpx_doctor --parameters [--json]    every parameter, its value, and
                                            where it comes from
       tcpx_doctor plan OPTION...           what a job would take of each host

  --ranks N      judge for N ranks on this host (default: what the launcher's
                 variables say, else 1)
  --gpus N       GPUs of one rank's process (default 1)
  --rtt-us N     round trip to the other hosts in microseconds, for the buffers
                 (default 500)
  --plugin FILE  this library instead of the one that NCCL would find
  --nccl FILE    this NCCL instead of the loader's libnccl.so.2 (PyTorch brings
                 its own)
  --json         one JSON object instead of lines
  --quiet        leave out what is ok
  --version      version and build
  -h, --help     this text

  --port N       listen, HOST: the port of the listening doctor (17617; --hosts:
                 the kernel chooses)
  --until-eof    listen: end with the standard input
  --ms N         HOST, --hosts: milliseconds of each stream (HOST 1000, --hosts
                 200); 0: none; from 10000 on TCPX_LANES is recommended
  --summary      HOST: one line, as --hosts reads it
  --at-once N    --hosts: ask N pairs at once (default: half as many as there
                 are hosts; 1: nothing else is on the network)
  --start TEXT   --hosts: how a command is started on a host ("ssh -o
                 BatchMode=yes {host}"; in a Slurm job "srun --overlap --nodes=1
                 --ntasks=1 --nodelist={host}")
  --remote TEXT  --hosts: the doctor there ("tcpx_doctor"), and variables in
                 front of it ("env A=B /opt/tcpx_doctor")

  --hosts N           plan: hosts like this one (2 or more)
  --ranks-per-host N  plan: ranks of each host (1 to 256)
  --channels N        plan: channels (1 to 65536; NCCL has up to 64)
  --pattern P         plan: ring, or alltoall: each rank with all ranks of
                      other hosts, by so many channels

plan says what each host has then: sockets, ports, descriptors, memory,
keepalive packets, time to connect; and which limit of this host is reached
first, and what to set. It takes --rtt-us, --json and --quiet, too.

HOST asks, for each pair of interfaces: is it reachable, round trip, path MTU,
is a DSCP kept; then whether clocks, secrets and parameters agree, and, through
the plugin, whether each pair of devices connects and what 1, 4 and 16 flows
carry in both directions; it ends with the settings that follow. It takes about
10 s.

--hosts starts "listen --until-eof" on every host by --start, then "ADDRESS
--summary" on the first of each pair. Nothing is installed and nothing stays. No
host is in two pairs at once, so N hosts take N - 1 rounds of about 5 s. Pairs
of one round may share a link of the network: --at-once 1 measures each alone.

The listening doctor answers anyone who reaches its port: stop it when done. Run
the doctor where the job runs: in the same container, by the same launcher, with
the same variables. It needs no root.

docs/doctor.md explains every line.

exit code: 0 no problem; 1 a problem; 2 wrong usage
)";

}  // namespace

const char* UsageText() { return kUsage; }

}  // namespace doctor
}  // namespace tcpx
