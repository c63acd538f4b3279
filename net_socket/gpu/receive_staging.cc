#include "net_socket/gpu/receive_staging.h"

#include <algorithm>

namespace tcpx {

// A line of LL128: 120 bytes of data, then 8 bytes of flag. LL has its flags inside each aligned word of 8 bytes, which
// lands whole: so what is right for LL128 is right for LL, and the two need not be distinguished.
constexpr size_t kLineBytes = 128;
constexpr size_t kLineData = 120;

PayloadPlace* ReceiveStaging::Take(const PayloadPlace& wanted) {
  GpuSlot* const slot = slots_->Take();
  if (slot == nullptr) return nullptr;
  slot->bytes = std::min(wanted.bytes, pool().slot_bytes());
  slot->landing = wanted.landing;
  slot->offset = wanted.offset;
  slot->message_bytes = wanted.message_bytes;
  return slot;
}

void ReceiveStaging::Filled(PayloadPlace* place) {
  GpuSlot* const slot = static_cast<GpuSlot*>(place);
  slot->next_filled = filled_.load(std::memory_order_relaxed);
  while (!filled_.compare_exchange_weak(slot->next_filled, slot, std::memory_order_acq_rel)) {
  }
}

absl::Status ReceiveStaging::Poll() {
  if (idle()) return absl::OkStatus();
  const GpuDriver& driver = pool().driver();
  GpuScope scope(driver, pool().place().context);
  absl::Status status = scope.status();
  if (status.ok()) status = StartCopies();
  while (status.ok() && copying_begin_ != copying_end_) {
    GpuSlot* const slot = copying_[copying_begin_ % GpuAllowance::kSlots];
    const int result = driver.api().event_query(slot->event);
    if (result == kCuNotReady) break;
    status = driver.Check(result, "cuMemcpyHtoDAsync");
    if (!status.ok()) break;
    ++copying_begin_;
    slot->landing->Landed(slot->bytes, slot->message_bytes);
    slots_->Give(slot);
  }
  return status;
}

absl::Status ReceiveStaging::StartCopies() {
  GpuSlot* newest = filled_.exchange(nullptr, std::memory_order_acq_rel);
  GpuSlot* oldest = nullptr;
  while (newest != nullptr) {
    GpuSlot* const next = newest->next_filled;
    newest->next_filled = oldest;
    oldest = newest;
    newest = next;
  }
  absl::Status status;
  // Each that was taken off goes into the ring: after a failure, for Abandon.
  for (GpuSlot* slot = oldest; slot != nullptr; slot = slot->next_filled) {
    copying_[copying_end_++ % GpuAllowance::kSlots] = slot;
    if (status.ok()) status = Copy(*slot);
  }
  return status;
}

absl::Status ReceiveStaging::Copy(const GpuSlot& slot) {
  const CuAddress to = CuAddressOf(slot.landing->data) + slot.offset;
  // Lines begin at multiples of their length in the message. Our own cuts do, too: another head is a stranger's.
  const size_t to_line = (kLineBytes - slot.offset % kLineBytes) % kLineBytes;
  const size_t head = slot.landing->way.flag_lines ? std::min<size_t>(to_line, slot.bytes) : slot.bytes;
  const size_t lines = (slot.bytes - head) / kLineBytes;
  const size_t tail = head + lines * kLineBytes;
  absl::Status status = CopyPlain(to, slot.data, head);
  if (status.ok() && lines > 0) status = CopyLines(to + head, slot.data + head, lines);
  if (status.ok()) status = CopyPlain(to + tail, slot.data + tail, slot.bytes - tail);
  return status.ok() ? pool().Record(slot) : status;
}

absl::Status ReceiveStaging::CopyPlain(CuAddress to, const char* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const GpuDriver& driver = pool().driver();
  return driver.Check(driver.api().copy_to_device(to, from, bytes, pool().stream()), "cuMemcpyHtoDAsync");
}

absl::Status ReceiveStaging::CopyLines(CuAddress to, const char* from, size_t lines) {
  absl::Status status = CopyStrided(to, from, kLineData, lines);
  if (!status.ok()) return status;
  return CopyStrided(to + kLineData, from + kLineData, kLineBytes - kLineData, lines);
}

absl::Status ReceiveStaging::CopyStrided(CuAddress to, const char* from, size_t width, size_t lines) {
  CuCopy2D copy;
  copy.source_type = kCuMemoryHost;
  copy.source_host = from;
  copy.source_pitch = kLineBytes;
  copy.target_type = kCuMemoryDevice;
  copy.target_device = to;
  copy.target_pitch = kLineBytes;
  copy.width = width;
  copy.height = lines;
  const GpuDriver& driver = pool().driver();
  return driver.Check(driver.api().copy_2d(&copy, pool().stream()), "cuMemcpy2DAsync");
}

void ReceiveStaging::Abandon() {
  const bool over = copying_begin_ == copying_end_ || pool().AwaitCopies();
  copying_begin_ = copying_end_;
  filled_.store(nullptr, std::memory_order_relaxed);
  over ? slots_->Reset() : slots_->Lose();
}

}  // namespace tcpx
