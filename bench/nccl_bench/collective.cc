#include "bench/nccl_bench/collective.h"

namespace tcpx {
namespace nccl_bench {

const char* CollectiveName(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduce:
      return "reduce";
    case Collective::kSendReceive:
      return "sendrecv";
    case Collective::kAllToAll:
      return "alltoall";
  }
  return "?";
}

const char* RedOpName(RedOp op) {
  switch (op) {
    case RedOp::kSum:
      return "sum";
    case RedOp::kMin:
      return "min";
    case RedOp::kMax:
      return "max";
  }
  return "?";
}

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

bool HasRoot(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce;
}

bool RunsInPlace(Collective collective) {
  return collective != Collective::kSendReceive && collective != Collective::kAllToAll;
}

Layout LayoutOf(Collective collective, uint64_t bytes, DataType type, int rank, int ranks) {
  const size_t all = static_cast<size_t>(bytes) / DataTypeBytes(type);
  const size_t part = all / static_cast<size_t>(ranks);
  const size_t parts = part * static_cast<size_t>(ranks);
  const size_t own = part * static_cast<size_t>(rank);
  Layout layout;
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kSendReceive:
      layout = {all, all, all, 0, 0, 0};
      break;
    case Collective::kAllGather:
      layout = {part, part, parts, 0, own, 0};
      break;
    case Collective::kReduceScatter:
      layout = {part, parts, part, 0, 0, own};
      break;
    case Collective::kAllToAll:
      layout = {part, parts, parts, 0, 0, 0};
      break;
  }
  const size_t larger = layout.send_count > layout.receive_count ? layout.send_count : layout.receive_count;
  layout.bytes = larger * DataTypeBytes(type);
  return layout;
}

double BusFactor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kSendReceive:
      return 1;
  }
  return 1;
}

}  // namespace nccl_bench
}  // namespace tcpx
