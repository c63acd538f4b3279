// refused_rma.h: what the tables of one-sided transfers lead to in a forked child.
//
// Purpose: the groups are the parent's, and their mutexes may be held by threads that are not here: every call is
//          refused, and every end does nothing.
// Threads: any.
// Errors:  as PluginApi in a forked child.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/rma_api.h"

namespace tcpx {

class RefusedRma final : public RmaApi {
 public:
  explicit RefusedRma(PluginApi* net) : net_(net) {}

  absl::Status Post(RmaContexts*, int, const RmaOperation&, RmaRequest**) override { return Refusal(); }
  absl::Status Flush(RmaContexts*, int, uint32_t, RmaRequest**) override { return Refusal(); }
  absl::Status Test(RmaGroup*, RmaRequest*, bool*) override { return Refusal(); }
  absl::Status Progress(RmaContexts*) override { return Refusal(); }
  bool HasFailed(RmaContexts*) override { return true; }

  bool Offered() override { return false; }
  absl::StatusOr<RmaListen*> Listen(Context*, int, void*) override { return Refusal(); }
  void CloseListen(RmaListen*) override {}
  absl::StatusOr<RmaGroup*> Connect(RmaListen*, absl::Span<void* const>, uint32_t) override { return Refusal(); }
  void Close(RmaGroup*) override {}
  absl::StatusOr<RmaContexts*> OpenContexts(RmaGroup*, int, int) override { return Refusal(); }
  void CloseContexts(RmaContexts*) override {}
  absl::StatusOr<RmaHandle> Register(RmaGroup*, void*, size_t, MemoryType, RmaUse) override { return Refusal(); }
  void Deregister(RmaGroup*, RmaHandle) override {}

 private:
  // The plugin's words, which it says once.
  absl::Status Refusal() { return net_->MakeVirtualDevice({}).status(); }

  PluginApi* const net_;
};

}  // namespace tcpx
