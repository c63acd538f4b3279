#include "bench/rma_bench/options.h"

namespace tcpx {
namespace bench {
namespace {

constexpr char kUsage[] =
    R"(usage: rma_bench --library PATH [--vs PATH] [options]
                                           two processes on this machine
       rma_bench --listen [PORT] --library PATH
       rma_bench --connect HOST[:PORT] --library PATH [options]
                                           two machines: the side that waits,
                                           and the side that measures

Drives a library that exports a table of one-sided transfers (ncclRmaPlugin_v14
to v16) as NCCL's proxy thread does: each message is a put with a strong signal,
and the other side waits for the signal. Host memory only. TCPX_RMA=1 is set
where the environment does not say otherwise.

what to measure
  --library PATH     the library
  --vs PATH          a second library, by turns, and the ratio
  --table vN         v14 to v16; default: the newest that the library exports
  --dev N            its device (default 0)
  --mode M[,M...]    latency     half round trip of puts, compared with messages
                                 of 64 bytes more on a bare socket
                     rate        small puts one way, 32 in flight, compared with
                                 a bare socket with one call for each
                     bandwidth   large puts one way, --window in flight,
                                 compared with isend and irecv of the library
                     all         these three, which is the default
  -b SIZE -e SIZE -f N
                     sizes from -b to -e, each -f times the one before
                     (8, 64K, 16M; default: the mode's own)
  --window N         puts in flight, of bandwidth; 1 to 32 (default 8)

  -n N, -w N         messages per sample and before it (default: chosen for
                     --sample-ms)
  --alone            only the library, nothing to compare it with

how to measure
  --samples N        samples per figure (default 7); fewer than 5: no verdict
  --sample-ms N      length of a sample (default 25)
  --budget S         seconds per mode (default 45)
  --phase P          near, far or any: which phase of the machine counts
                     (default near)
  --cpus A,B         CPUs of the two processes (default: chosen)
  --no-pin           do not pin them
  --no-priority      do not raise their priority
  --yield            give the CPU away after each pass without progress
  --keep-disturbed   keep samples during which other processes had the CPU
  --timeout S        end a run that makes no progress for so long (default 60)

what to print
  --csv, --json      instead of the tables
  --report FILE      write a page that shows all figures
  --note TEXT        a line for the configuration
  --verbose          each sample, and what the library says
  --version, --help

exit code: 0 measured; 1 something failed; 2 wrong usage
)";

}  // namespace

const char* RmaUsageText() { return kUsage; }

}  // namespace bench
}  // namespace tcpx
