#include "tests/unit/nccl/fake_rma.h"

#include <memory>

namespace tcpx {
namespace {

std::unique_ptr<FakeRma>& Installed() {
  static auto& installed = *new std::unique_ptr<FakeRma>(new FakeRma);
  return installed;
}

}  // namespace

RmaApi& TheRma() { return *Installed(); }

FakeRma& NewFakeRma() {
  Installed() = std::make_unique<FakeRma>();
  return *Installed();
}

absl::Status FakeRma::Post(RmaContexts*, int index, const RmaOperation& asked, RmaRequest** posted) {
  context_index = index;
  operation = asked;
  *posted = status.ok() ? &request : nullptr;
  return status;
}

absl::Status FakeRma::Flush(RmaContexts*, int index, uint32_t of, RmaRequest** posted) {
  context_index = index;
  rank = of;
  *posted = status.ok() ? &request : nullptr;
  return status;
}

absl::Status FakeRma::Test(RmaGroup*, RmaRequest*, bool* is_done) {
  *is_done = done;
  return status;
}

absl::StatusOr<RmaListen*> FakeRma::Listen(Context* on, int, void*) {
  context = on;
  if (!status.ok()) return status;
  return &listen;
}

absl::StatusOr<RmaGroup*> FakeRma::Connect(RmaListen*, absl::Span<void* const> handles, uint32_t own) {
  count = static_cast<int>(handles.size());
  rank = own;
  if (!status.ok()) return status;
  return &group;
}

absl::StatusOr<RmaContexts*> FakeRma::OpenContexts(RmaGroup*, int wanted, int wanted_class) {
  count = wanted;
  traffic_class = wanted_class;
  if (!status.ok()) return status;
  return &contexts;
}

absl::StatusOr<RmaHandle> FakeRma::Register(RmaGroup*, void* start, size_t length, MemoryType kind, RmaUse used) {
  data = start;
  bytes = length;
  type = kind;
  use = used;
  if (!status.ok()) return status;
  return RmaHandle{7};
}

}  // namespace tcpx
