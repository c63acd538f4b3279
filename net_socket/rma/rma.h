// rma.h: the groups of the process for the tables of one-sided transfers.
//
// Purpose: the one implementation of RmaApi. Finds the group of a call, and moves the groups that NCCL does not call.
// Threads: as RmaApi. "tcpx-rma" exists while there is a group, and sleeps between ticks.
// Lifetime: borrows the plugin.
// Errors:  as RmaApi.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/mutex.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/group.h"

namespace tcpx {

class Rma final : public RmaApi {
 public:
  // `offer`: what groups of this process keep to; nothing: it may have none.
  Rma(PluginApi* net, std::function<std::optional<RmaLimits>()> offer) : net_(net), offer_(std::move(offer)) {}
  ~Rma() override { EndThread(); }

  // Leaves groups as they are that NCCL has not closed: its threads may be inside.
  void EndThread();
  // True exactly when no group is left, nor one that is being connected or closed.
  bool Unused();

  absl::Status Post(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request) override {
    return contexts->group->Post(contexts, context, operation, request);
  }
  absl::Status Flush(RmaContexts* contexts, int, uint32_t, RmaRequest** request) override {
    return contexts->group->Flush(contexts, request);
  }
  absl::Status Test(RmaGroup* group, RmaRequest* request, bool* done) override { return group->Test(request, done); }
  absl::Status Progress(RmaContexts* contexts) override { return contexts->group->Progress(); }
  bool HasFailed(RmaContexts* contexts) override { return contexts->group->failed(); }

  bool Offered() override { return offer_().has_value(); }
  absl::StatusOr<RmaListen*> Listen(Context* context, int device, void* handle) override;
  void CloseListen(RmaListen* listen) override;
  absl::StatusOr<RmaGroup*> Connect(RmaListen* listen, absl::Span<void* const> handles, uint32_t rank) override;
  void Close(RmaGroup* group) override;
  absl::StatusOr<RmaContexts*> OpenContexts(RmaGroup* group, int count, int traffic_class) override {
    return group->OpenContexts(count, traffic_class);
  }
  void CloseContexts(RmaContexts* contexts) override { contexts->group->CloseContexts(contexts); }
  absl::StatusOr<RmaHandle> Register(RmaGroup* group, void* data, size_t bytes, MemoryType type, RmaUse use) override {
    return group->Register(data, bytes, type, use);
  }
  void Deregister(RmaGroup* group, RmaHandle region) override { group->Deregister(region); }

 private:
  absl::StatusOr<RmaGroup*> MakeGroup(RmaListen* listen, absl::Span<void* const> handles, uint32_t rank);
  absl::Status Enter(RmaGroup* group);
  void Leave(RmaGroup* group);
  void End(std::unique_ptr<RmaGroup> group);
  void Count(int more);
  void Run();
  // Looks at `all` groups, or at those with copies under way. True: there are some.
  bool Tick(bool all, bool* moved);

  PluginApi* const net_;
  const std::function<std::optional<RmaLimits>()> offer_;

  Mutex life_;  // of the thread
  std::thread thread_ TCPX_GUARDED_BY(life_);
  std::atomic<bool> over_{false};  // no thread is started any more
  std::atomic<bool> ends_{false};

  Mutex mutex_;
  absl::flat_hash_map<RmaGroup*, bool> groups_ TCPX_GUARDED_BY(mutex_);  // whether the latest look found copies
  int inside_ TCPX_GUARDED_BY(mutex_) = 0;  // groups: those, and the ones that are being connected or closed
};

}  // namespace tcpx
