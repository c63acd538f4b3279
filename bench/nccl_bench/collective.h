// collective.h: what each collective moves, and how its time becomes a bandwidth.
//
// Purpose: the counts of the buffers, where they overlap in place, and the factor from algorithm to bus bandwidth.
// Threads: any; pure.
// Units:   counts are elements, Layout::bytes is bytes. Errors: none.
// Source:  sizes and factors are those of nccl-tests (its doc/PERFORMANCE.md): the size of an all-gather,
//          reduce-scatter and all-to-all is that of all ranks' parts together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/nccl_bench/data_type.h"

namespace tcpx {
namespace nccl_bench {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kSendReceive, kAllToAll };
inline constexpr Collective kCollectives[] = {
    Collective::kAllReduce, Collective::kAllGather,   Collective::kReduceScatter, Collective::kBroadcast,
    Collective::kReduce,    Collective::kSendReceive, Collective::kAllToAll};
const char* CollectiveName(Collective collective);

enum class RedOp { kSum, kMin, kMax };
inline constexpr RedOp kRedOps[] = {RedOp::kSum, RedOp::kMin, RedOp::kMax};
const char* RedOpName(RedOp op);

// True exactly when the collective takes a reduction.
bool Reduces(Collective collective);
// True exactly when it has a root.
bool HasRoot(Collective collective);
// True exactly when NCCL lets it run with its input inside its output. Send and receive need two buffers, and so does
// the all-to-all made of them.
bool RunsInPlace(Collective collective);

struct Layout {
  size_t count = 0;          // as the call takes it
  size_t send_count = 0;     // of the whole input
  size_t receive_count = 0;  // of the whole output
  uint64_t bytes = 0;        // the size in the table, and of algbw
  // In place both live in one buffer of max(send_count, receive_count), at these elements.
  size_t in_place_send = 0;
  size_t in_place_receive = 0;
};
// For at most `bytes`; parts are cut down to whole elements, equal on all ranks.
Layout LayoutOf(Collective collective, uint64_t bytes, DataType type, int rank, int ranks);

// busbw / algbw.
double BusFactor(Collective collective, int ranks);

}  // namespace nccl_bench
}  // namespace tcpx
