#include "net_socket/gpu/send_staging.h"

#include <algorithm>
#include <utility>

namespace tcpx {

SendStaging::SendStaging(std::unique_ptr<GpuAllowance> slots, int messages)
    : slots_(std::move(slots)),
      waiting_(static_cast<size_t>(messages)),
      steps_(static_cast<size_t>(messages + GpuAllowance::kSlots)) {}

void SendStaging::Push(SendRequest* message, bool on_gpu) { waiting_.Push({message, on_gpu && message->bytes > 0}); }

absl::Status SendStaging::Poll() {
  Reap();
  if (idle()) return absl::OkStatus();
  GpuScope scope(pool().driver(), pool().place().context);
  if (!scope.status().ok()) return scope.status();
  absl::Status status = StartCopies();
  return status.ok() ? LookAtCopies() : status;
}

void SendStaging::Reap() {
  for (int i = posted_count_ - 1; i >= 0; --i) {
    GpuSlot* const slot = posted_[i];
    if (!slot->part.done()) continue;
    slot->message->left.fetch_sub(slot->part.bytes, std::memory_order_release);
    posted_[i] = posted_[--posted_count_];
    slots_->Give(slot);
  }
}

absl::Status SendStaging::StartCopies() {
  while (!waiting_.empty()) {
    const Message first = waiting_.at(0);
    if (!first.on_gpu) {
      steps_.Push({nullptr, first.request});
      waiting_.Pop();
      continue;
    }
    GpuSlot* const slot = slots_->Take();
    if (slot == nullptr) return absl::OkStatus();
    absl::Status status = StartCopy(slot, first.request);
    if (!status.ok()) return status;
    copied_ += slot->part.bytes;
    if (copied_ < first.request->bytes) continue;
    copied_ = 0;
    waiting_.Pop();
  }
  return absl::OkStatus();
}

// After a failure the step stays, for Abandon: the copy may have been started.
absl::Status SendStaging::StartCopy(GpuSlot* slot, SendRequest* message) {
  const size_t bytes = std::min(pool().slot_bytes(), message->bytes - copied_);
  slot->message = message;
  slot->part.data = slot->data;
  slot->part.bytes = bytes;
  slot->part.message_bytes = message->message_bytes;
  slot->part.message_offset = copied_;
  slot->part.sequence = uint64_t{message->sequence};
  slot->part.tag = message->tag;
  slot->part.events = message->events;
  slot->part.left.store(bytes, std::memory_order_relaxed);
  steps_.Push({slot, nullptr});
  const GpuDriver& driver = pool().driver();
  const CuAddress from = CuAddressOf(message->data) + copied_;
  absl::Status status =
      driver.Check(driver.api().copy_from_device(slot->data, from, bytes, pool().stream()), "cuMemcpyDtoHAsync");
  return status.ok() ? pool().Record(*slot) : status;
}

absl::Status SendStaging::LookAtCopies() {
  const GpuDriver& driver = pool().driver();
  for (; ready_ < steps_.size(); ++ready_) {
    const Step& step = steps_.at(ready_);
    if (step.slot == nullptr) continue;
    const int result = driver.api().event_query(step.slot->event);
    if (result == kCuNotReady) return absl::OkStatus();
    absl::Status status = driver.Check(result, "cuMemcpyDtoHAsync");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

SendRequest* SendStaging::TakeReady() {
  if (ready_ == 0) return nullptr;
  --ready_;
  const Step step = steps_.Pop();
  if (step.slot == nullptr) return step.whole;
  posted_[posted_count_++] = step.slot;
  return &step.slot->part;
}

void SendStaging::Abandon() {
  const bool over = steps_.empty() || pool().AwaitCopies();
  while (!steps_.empty()) steps_.Pop();
  while (!waiting_.empty()) waiting_.Pop();
  ready_ = 0;
  copied_ = 0;
  posted_count_ = 0;
  over ? slots_->Reset() : slots_->Lose();
}

}  // namespace tcpx
