#include "profiler/event.h"

#include <cstring>

#include "nccl/profiler.h"

namespace tcpx {
namespace {

template <typename Descriptor>
void TakeCollective(const Descriptor& event, EventFacts* facts) {
  const auto& coll = event.coll;
  facts->function.Set(coll.func);
  facts->datatype.Set(coll.datatype);
  facts->algorithm.Set(coll.algo);
  facts->protocol.Set(coll.proto);
  facts->count = coll.count;
  facts->sequence = coll.seqNumber;
  facts->root = coll.root;
}

template <typename Descriptor>
void TakePointToPoint(const Descriptor& event, EventFacts* facts) {
  facts->function.Set(event.p2p.func);
  facts->datatype.Set(event.p2p.datatype);
  facts->count = event.p2p.count;
  facts->peer = event.p2p.peer;
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
      TakeCollective(event, &facts);
      break;
    case ncclProfileP2p:
      TakePointToPoint(event, &facts);
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
      facts.function.Set(event.collApi.func);
      facts.datatype.Set(event.collApi.datatype);
      facts.count = event.collApi.count;
      facts.root = event.collApi.root;
      facts.captured = event.collApi.graphCaptured;
      break;
    case ncclProfileP2pApi:
      facts.function.Set(event.p2pApi.func);
      facts.datatype.Set(event.p2pApi.datatype);
      facts.count = event.p2pApi.count;
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
    facts.function.Set(event.ceColl.func);
    facts.datatype.Set(event.ceColl.datatype);
    facts.count = event.ceColl.count;
    facts.sequence = event.ceColl.seqNumber;
    facts.root = event.ceColl.root;
  } else if (event.type == ncclProfileCeBatch) {
    facts.bytes = event.ceCollBatch.totalBytes;
    facts.steps = event.ceCollBatch.numOps;
  }
  return facts;
}

}  // namespace tcpx
