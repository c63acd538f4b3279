// fake_rma.h: one-sided transfers for the tables to talk to: remembers what it was given, answers what a test sets.
//
// Purpose: defines tcpx::TheRma and the classes that rma_api.h leaves opaque.
// Threads: none; a test sets, calls and reads from one thread.
// Errors:  every call that can fail returns `status`.
#pragma once

#include <vector>

#include "nccl/rma_api.h"

namespace tcpx {

class RmaListen {};
class RmaGroup {};
class RmaContexts {};
class RmaRequest {};

class FakeRma final : public RmaApi {
 public:
  // What a test sets.
  absl::Status status;
  bool offered = true;
  bool done = true;
  bool failed = false;

  // What it gives out.
  RmaListen listen;
  RmaGroup group;
  RmaContexts contexts;
  RmaRequest request;

  // What it was given last.
  Context* context = nullptr;
  int count = 0;  // of handles, or of contexts
  uint32_t rank = 0;
  int traffic_class = kNoTrafficClass;
  int context_index = -1;
  RmaOperation operation;
  void* data = nullptr;
  size_t bytes = 0;
  MemoryType type = MemoryType::kHost;
  RmaUse use = RmaUse::kOther;
  std::vector<const void*> closed;
  RmaHandle deregistered = 0;

  absl::Status Post(RmaContexts* in, int index, const RmaOperation& asked, RmaRequest** posted) override;
  absl::Status Flush(RmaContexts* in, int index, uint32_t of, RmaRequest** posted) override;
  absl::Status Test(RmaGroup* in, RmaRequest* asked, bool* is_done) override;
  absl::Status Progress(RmaContexts*) override { return status; }
  bool HasFailed(RmaContexts*) override { return failed; }
  bool Offered() override { return offered; }
  absl::StatusOr<RmaListen*> Listen(Context* on, int device, void* handle) override;
  void CloseListen(RmaListen* gone) override { closed.push_back(gone); }
  absl::StatusOr<RmaGroup*> Connect(RmaListen* by, absl::Span<void* const> handles, uint32_t own) override;
  void Close(RmaGroup* gone) override { closed.push_back(gone); }
  absl::StatusOr<RmaContexts*> OpenContexts(RmaGroup* in, int wanted, int wanted_class) override;
  void CloseContexts(RmaContexts* gone) override { closed.push_back(gone); }
  absl::StatusOr<RmaHandle> Register(RmaGroup* in, void* start, size_t length, MemoryType kind, RmaUse used) override;
  void Deregister(RmaGroup*, RmaHandle region) override { deregistered = region; }
};

// The tables use it from here on.
FakeRma& NewFakeRma();

}  // namespace tcpx
