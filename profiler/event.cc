#include "profiler/event.h"

#include <cstddef>
#include <cstring>

#include "nccl/profiler_tables.h"

namespace tcpx {
namespace {

// What all calls and operations have.
template <typename Operation>
void TakeOperation(const Operation& operation, EventFacts* facts) {
  facts->function.Set(operation.func);
  facts->datatype.Set(operation.datatype);
  facts->count = operation.count;
}

// Looks only into network events whose descriptor is known.
void TakeNetwork(int64_t id, const void* data, EventFacts* facts) {
  constexpr int64_t kSocket = NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER;
  if (id != kSocket || data == nullptr) return;
  const auto& socket = *static_cast<const ncclProfilerNetSockDescr_v1_t*>(data);
  if (socket.type != ncclProfileSocket) return;
  facts->fd = socket.sock.fd;
  facts->sends = socket.sock.op == 0;
  facts->bytes = socket.sock.length;
}

// What comes before a collective or a point-to-point, and what is done for it.
void TakeOther(const ncclProfilerEventDescr_v6_t& event, EventFacts* facts) {
  switch (event.type) {
    case ncclProfileGroupApi:
      facts->depth = event.groupApi.groupDepth;
      facts->captured = event.groupApi.graphCaptured;
      break;
    case ncclProfileCollApi:
      TakeOperation(event.collApi, facts);
      facts->root = event.collApi.root;
      facts->captured = event.collApi.graphCaptured;
      break;
    case ncclProfileP2pApi:
      TakeOperation(event.p2pApi, facts);
      facts->captured = event.p2pApi.graphCaptured;
      break;
    case ncclProfileProxyOp:
      facts->channel = event.proxyOp.channelId;
      facts->peer = event.proxyOp.peer;
      facts->steps = event.proxyOp.nSteps;
      facts->bytes = static_cast<uint64_t>(event.proxyOp.chunkSize);
      facts->sends = event.proxyOp.isSend != 0;
      break;
    case ncclProfileProxyStep:
      facts->step = event.proxyStep.step;
      break;
    case ncclProfileKernelCh:
      facts->channel = event.kernelCh.channelId;
      facts->gpu_time = event.kernelCh.pTimer;
      break;
    case ncclProfileNetPlugin:
      TakeNetwork(event.netPlugin.id, event.netPlugin.data, facts);
      break;
    default:
      break;
  }
}

}  // namespace

const EventType& EventTypeOf(uint32_t type) {
  static constexpr EventType kOther = {0, "", "nccl", nullptr, "9 other"};
  for (const EventType& known : kEventTypes) {
    if (known.bit == type) return known;
  }
  return kOther;
}

void ShortText::Set(const char* from) {
  if (from == nullptr) return;
  strncpy(text, from, sizeof(text) - 1);
}

ncclProfilerEventDescr_v6_t Widened(const ncclProfilerEventDescr_v4_t& event) {
  ncclProfilerEventDescr_v6_t wide = {};
  wide.type = event.type;
  wide.parentObj = event.parentObj;
  wide.rank = event.rank;
  static_assert(sizeof(event) == offsetof(ncclProfilerEventDescr_v4_t, coll) + sizeof(event.coll),
                "coll is the largest");
  memcpy(&wide.coll, &event.coll, sizeof(event.coll));
  // The parent of v4 is the group: it does not have the application's calls.
  if (event.type == ncclProfileColl) wide.coll.parentGroup = event.parentObj;
  if (event.type == ncclProfileP2p) wide.p2p.parentGroup = event.parentObj;
  return wide;
}

EventFacts FactsOf(const ncclProfilerEventDescr_v6_t& event) {
  EventFacts facts;
  facts.type = static_cast<uint32_t>(event.type);
  facts.parent = event.parentObj;
  switch (event.type) {
    case ncclProfileColl:
      TakeOperation(event.coll, &facts);
      facts.algorithm.Set(event.coll.algo);
      facts.protocol.Set(event.coll.proto);
      facts.sequence = event.coll.seqNumber;
      facts.root = event.coll.root;
      facts.group = event.coll.parentGroup;
      break;
    case ncclProfileP2p:
      TakeOperation(event.p2p, &facts);
      facts.peer = event.p2p.peer;
      facts.group = event.p2p.parentGroup;
      break;
    case ncclProfileCeColl:
      TakeOperation(event.ceColl, &facts);
      facts.sequence = event.ceColl.seqNumber;
      facts.root = event.ceColl.root;
      break;
    case ncclProfileCeBatch:
      facts.bytes = event.ceCollBatch.totalBytes;
      facts.steps = event.ceCollBatch.numOps;
      break;
    default:
      TakeOther(event, &facts);
  }
  return facts;
}

}  // namespace tcpx
