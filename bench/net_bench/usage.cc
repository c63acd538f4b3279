#include "bench/net_bench/options.h"

namespace tcpx {
namespace bench {
namespace {

constexpr char kUsage[] =
    R"(usage: net_bench --plugin PATH [--raw] [options]       two processes here
       net_bench --listen [PORT] --plugin PATH         two machines: the side
                                                       that waits ...
       net_bench --connect HOST[:PORT] --plugin PATH [--raw] [options]
                                                       ... and that measures

Drives an NCCL network plugin as NCCL's proxy thread does, and measures it.
Without a mode: latency and one-way bandwidth. With --raw each figure is next to
that of bare, spinning, non-blocking TCP sockets.

what to measure
  --plugin PATH          the plugin's .so; without it only bare sockets
  --api vN               v6 to v12; default: the newest that the plugin exports
  --dev N                the plugin's device (default 0)
  --traffic-class N      of the communicator, 0 to 255: what this side dials has
                         it (v10 and up; default: none set)
  --vs PATH              a second plugin (another build, say), by turns, and the
                         ratio: of latency, bandwidth, bidir, rate and many;
                         both sides name it
  --raw                  the floor: bare sockets, interleaved with the plugin's
                         samples, and the ratio
  --raw-cc NAME          congestion control of the bare sockets (default: the
                         system's)
  --mode M[,M...]        latency    half round trip of a ping-pong over two
                                    connections, one each way
                         bandwidth  one way, --window requests in flight
                         bidir      both ways at once
                         rate       one way, small messages, messages per second
                         many       one driver, more and more connections: time
                                    per message
                         idle       CPU time of connections that do nothing
                         setup      time, threads, memory, descriptors of many
                                    connections
                         allreduce  ring all-reduce of floats over --ranks
                                    processes, results checked
                         mixed      half round trip of a ping-pong while another
                                    connection streams messages of 4M
                         optional-recv  (also --optional-recv) a second thread
                                    plays the GPU and polls flags inside the
                                    data as LL and LL128 do: latency, message
                                    rate, calls to test, with NCCL's hint that a
                                    receive may be reported early and without
  -b SIZE -e SIZE -f N   sizes from -b to -e, each -f times the one before (8,
                         64K, 128M; default: the mode's own)
  -n N, -w N             messages per sample and before it (default: chosen for
                         --sample-ms)
  --conns N[,N...]       connections, all driven by one thread per process
  --window N             requests in flight per connection, 1 to 32 (default 8)
  --one-isend-per-pass   one isend per connection and pass, and a test of the
                         oldest request after it, as NCCL's proxy
  --check                verify every byte, every size, and guard bytes around
                         the receive buffers (slower)
  --profile              a profiler listens to the plugin's events (v10 and up)
                         and counts them: its cost is the difference to a run
                         without; the counts of each process go to stderr
  --ranks N              processes of allreduce (default 2)
  --seconds N            length of idle (default 10)
  --wire PROFILE         between two network namespaces that a relay joins:
                         delay, losses, paths, rates of rack, cloud, ecmp,
                         lossy, wan or incast, with bare sockets, too; without
                         --mode one way, 1M, 1, 4 and 16 connections; all other
                         options count (bench/netns/wired.sh; needs root)
  --wire-set SETTINGS    overrides of the profile: "delay=1ms loss=1% rate=100M"
  Flows of limited rate, between two network namespaces: bench/netns/shaped.sh.
  Two traffic classes on one congested link: bench/netns/qos.sh.
  Several links, fused to one device: bench/netns/fused.sh --links RATES.

how to measure
  --phase near|far|any   keep samples taken while the two CPUs are near each
                         other (default), far, or do not look
  --samples N            kept samples per cell (default 7)
  --sample-ms N          length of one sample (default 25)
  --budget SECONDS       stop a mode after this long with what there is (default
                         45)
  --yield                drivers give their CPU away after a pass without
                         progress, as NCCL's does; always so where both share
                         one CPU
  --keep-disturbed       keep samples too during which other processes had a
                         driver's CPU
  --no-pin, --cpus A,B   leave the drivers unpinned, or choose their CPUs
  --no-priority          do not ask for the highest scheduling priority (needs
                         CAP_SYS_NICE)
  --seed N               order of samples and contents of --check
  --timeout SECONDS      without progress for so long the run fails, saying
                         where (default 60)

output
  --csv, --json          instead of the table
  --report FILE          also a page of HTML with the figures as plots, which
                         needs nothing else to be read
  --also FILE            on that page too: another run, written by --json; may
                         be repeated
  --note TEXT            a line of the configuration, to tell runs apart
  --verbose              the plugin's INFO lines, and each sample as it is taken
  --version              version and build
  -h, --help             this text

exit code: 0 done; 1 the plugin or the system failed; 2 wrong usage
)";

}  // namespace

const char* UsageText() { return kUsage; }

}  // namespace bench
}  // namespace tcpx
