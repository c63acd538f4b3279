#include "bench/nccl_bench/issue.h"

#include "bench/nccl_bench/device.h"

namespace tcpx {
namespace nccl_bench {
namespace {

ncclDataType_t NcclType(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return ncclFloat32;
    case DataType::kHalf:
      return ncclFloat16;
    case DataType::kBfloat16:
      return ncclBfloat16;
    case DataType::kInt8:
      return ncclInt8;
  }
  return ncclFloat32;
}

ncclRedOp_t NcclOp(RedOp op) {
  switch (op) {
    case RedOp::kSum:
      return ncclSum;
    case RedOp::kMin:
      return ncclMin;
    case RedOp::kMax:
      return ncclMax;
  }
  return ncclSum;
}

// To the next rank, from the one before.
ncclResult_t SendReceive(const Problem& problem, size_t count, char* send, char* receive, ncclComm_t comm,
                         cudaStream_t stream) {
  const ncclDataType_t type = NcclType(problem.type);
  const int next = (problem.rank + 1) % problem.ranks;
  const int previous = (problem.rank + problem.ranks - 1) % problem.ranks;
  ncclGroupStart();
  const ncclResult_t sent = ncclSend(send, count, type, next, comm, stream);
  const ncclResult_t received = ncclRecv(receive, count, type, previous, comm, stream);
  const ncclResult_t ended = ncclGroupEnd();
  if (sent != ncclSuccess) return sent;
  return received != ncclSuccess ? received : ended;
}

// Made of sends and receives: ncclAlltoAll exists only from 2.28 on.
ncclResult_t AllToAll(const Problem& problem, size_t count, char* send, char* receive, ncclComm_t comm,
                      cudaStream_t stream) {
  const ncclDataType_t type = NcclType(problem.type);
  const size_t part_bytes = count * DataTypeBytes(problem.type);
  ncclResult_t result = ncclSuccess;
  ncclGroupStart();
  for (int peer = 0; peer < problem.ranks && result == ncclSuccess; ++peer) {
    const size_t at = static_cast<size_t>(peer) * part_bytes;
    result = ncclSend(send + at, count, type, peer, comm, stream);
    if (result == ncclSuccess) result = ncclRecv(receive + at, count, type, peer, comm, stream);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

ncclResult_t Issue(const Problem& problem, const Layout& layout, char* send, char* receive, ncclComm_t comm,
                   cudaStream_t stream) {
  const ncclDataType_t type = NcclType(problem.type);
  const ncclRedOp_t op = NcclOp(problem.op);
  switch (problem.collective) {
    case Collective::kAllReduce:
      return ncclAllReduce(send, receive, layout.count, type, op, comm, stream);
    case Collective::kAllGather:
      return ncclAllGather(send, receive, layout.count, type, comm, stream);
    case Collective::kReduceScatter:
      return ncclReduceScatter(send, receive, layout.count, type, op, comm, stream);
    case Collective::kBroadcast:
      return ncclBroadcast(send, receive, layout.count, type, problem.root, comm, stream);
    case Collective::kReduce:
      return ncclReduce(send, receive, layout.count, type, op, problem.root, comm, stream);
    case Collective::kSendReceive:
      return SendReceive(problem, layout.count, send, receive, comm, stream);
    case Collective::kAllToAll:
      return AllToAll(problem, layout.count, send, receive, comm, stream);
  }
  return ncclInvalidArgument;
}

}  // namespace

absl::Status IssueCollective(const Problem& problem, const Layout& layout, char* send, char* receive, ncclComm_t comm,
                             cudaStream_t stream) {
  return NcclStatus(Issue(problem, layout, send, receive, comm, stream), CollectiveName(problem.collective), comm);
}

}  // namespace nccl_bench
}  // namespace tcpx
