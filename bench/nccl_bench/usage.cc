#include "bench/nccl_bench/options.h"

namespace tcpx {
namespace nccl_bench {
namespace {

constexpr char kUsage[] =
    R"(usage: nccl_bench --local N [options]     N ranks on this machine
       nccl_bench [options]               one rank of a job: RANK, WORLD_SIZE or SIZE, MASTER_ADDR and MASTER_PORT,
                                          or what Slurm, Open MPI and Kubernetes indexed jobs set

Runs NCCL's collectives over the network and prints the table of nccl-tests; every result is checked against the host's.

what to run
  --collective C[,C...]  all_reduce (default), all_gather, reduce_scatter, broadcast, reduce, sendrecv, alltoall, or all
  -d T[,T...]            float (default), half, bfloat16, int8, or all
  -o OP[,OP...]          sum (default), min, max, or all
  -r ROOT                root of broadcast and reduce (default 0)
  -b SIZE -e SIZE -f N   sizes from -b to -e, each -f times the one before (default 1K to 64M, 4)
  -n N, -w N             timed iterations (default 20) and those before (default 5)
  --graph                capture the timed iterations into one CUDA graph and launch that
  --no-check             only measure
  --seed N               contents of the buffers

where
  --local N              start N ranks here. Fewer GPUs than ranks: each rank says that it is a host of its own
                         (NCCL_HOSTID), so that they may share a GPU; times are then distorted
  --nets NET[,NET...]    run all of it over each of these in turn (NCCL_NET), for example tcpx,Socket: every rank
                         asserts that NCCL uses that one, and a last table compares each with the last named. With
                         --local each rank is a host of its own, or NCCL would not use the network
  --plugin P             NCCL_NET_PLUGIN of nets that are not NCCL's own: a path or a name; '' leaves it unset
                         (default: as the environment has it, else tcpx)

what else
  --mode M               bench       the table (default)
                         split       communicators split by two rules, and their parent, all in use
                         classes     two communicators of different traffic classes
                         abort       all ranks abort in mid-collective and then begin anew
                         killed      the last rank is killed in mid-collective; the others must get an error
                         reload      --rounds communicators, one after the other; says when the plugin was unloaded
                         one-sided   ncclPutSignal between all ranks, and collectives on windows; it needs NCCL 2.30.7,
                                     and NCCL_CTA_POLICY=2 for collectives without kernels
                         what abort and killed disturb are all-reduces of the largest size, -e
  --rounds N             of reload (default 50)
  --timeout SECONDS      a rank without progress for so long ends, saying where (default 120)
  --version              version and build

exit code: 0 done and right; 1 something failed, was wrong or used another network; 2 wrong usage
)";

}  // namespace

const char* UsageText() { return kUsage; }

}  // namespace nccl_bench
}  // namespace tcpx
