#include "profiler/event.h"

#include <cstring>

#include "nccl/profiler.h"

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

// What all versions have.
template <typename Descriptor>
EventFacts CommonFacts(const Descriptor& event) {
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
      break;
    case ncclProfileP2p:
      TakeOperation(event.p2p, &facts);
      facts.peer = event.p2p.peer;
      break;
    case ncclProfileProxyOp:
      facts.channel = event.proxyOp.channelId;
      facts.peer = event.proxyOp.peer;
      facts.steps = event.proxyOp.nSteps;
      facts.bytes = static_cast<uint64_t>(event.proxyOp.chunkSize);
      facts.sends = event.proxyOp.isSend != 0;
      break;
    case ncclProfileProxyStep:
      facts.step = event.proxyStep.step;
      break;
    case ncclProfileKernelCh:
      facts.channel = event.kernelCh.channelId;
      facts.gpu_time = event.kernelCh.pTimer;
      break;
    case ncclProfileNetPlugin:
      TakeNetwork(event.netPlugin.id, event.netPlugin.data, &facts);
      break;
    default:
      break;
  }
  return facts;
}

// What v5 added.
template <typename Descriptor>
EventFacts FactsFromV5(const Descriptor& event) {
  EventFacts facts = CommonFacts(event);
  switch (event.type) {
    case ncclProfileColl:
      facts.group = event.coll.parentGroup;
      break;
    case ncclProfileP2p:
      facts.group = event.p2p.parentGroup;
      break;
    case ncclProfileGroupApi:
      facts.depth = event.groupApi.groupDepth;
      facts.captured = event.groupApi.graphCaptured;
      break;
    case ncclProfileCollApi:
      TakeOperation(event.collApi, &facts);
      facts.root = event.collApi.root;
      facts.captured = event.collApi.graphCaptured;
      break;
    case ncclProfileP2pApi:
      TakeOperation(event.p2pApi, &facts);
      facts.captured = event.p2pApi.graphCaptured;
      break;
    default:
      break;
  }
  return facts;
}

}  // namespace

void ShortText::Set(const char* from) {
  if (from == nullptr) return;
  strncpy(text, from, sizeof(text) - 1);
}

EventFacts FactsOf(const ncclProfilerEventDescr_v4_t& event) { return CommonFacts(event); }
EventFacts FactsOf(const ncclProfilerEventDescr_v5_t& event) { return FactsFromV5(event); }

EventFacts FactsOf(const ncclProfilerEventDescr_v6_t& event) {
  EventFacts facts = FactsFromV5(event);
  if (event.type == ncclProfileCeColl) {
    TakeOperation(event.ceColl, &facts);
    facts.sequence = event.ceColl.seqNumber;
    facts.root = event.ceColl.root;
  } else if (event.type == ncclProfileCeBatch) {
    facts.bytes = event.ceCollBatch.totalBytes;
    facts.steps = event.ceCollBatch.numOps;
  }
  return facts;
}

}  // namespace tcpx
