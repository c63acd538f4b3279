#include "bench/net_bench/buffers.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "bench/command_line/sizes.h"
#include "common/payload/guard.h"
#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

size_t PhysicalBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

absl::Status Overwritten(const char* where, size_t offset) {
  return absl::DataLossError(absl::StrCat("guard byte ", offset, " ", where, " the receive buffer was overwritten"));
}

}  // namespace

size_t SlotRing::Stride(size_t bytes) { return (bytes + kSpareCapacity + 2 * kGuardBytes + kPage - 1) / kPage * kPage; }

absl::StatusOr<std::unique_ptr<SlotRing>> SlotRing::Create(const Shape& shape) {
  const size_t region_bytes = kPage + static_cast<size_t>(shape.slots) * Stride(shape.bytes_max);
  const size_t bytes = region_bytes * static_cast<size_t>(shape.regions);
  // Two processes, two directions.
  if (bytes > PhysicalBytes() / 8) {
    return absl::InvalidArgumentError(
        absl::StrCat(shape.regions, " connections x ", shape.slots, " slots of ", FormatSize(shape.bytes_max),
                     " are too much for this machine's memory; choose fewer, or smaller messages"));
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mmap of message buffers");
  FillGuard(memory, bytes);  // Pages exist before anything is timed.
  return std::unique_ptr<SlotRing>(new SlotRing(shape, region_bytes, static_cast<uint8_t*>(memory)));
}

SlotRing::SlotRing(const Shape& shape, size_t region_bytes, uint8_t* memory)
    : shape_(shape), region_bytes_(region_bytes), memory_(memory) {
  Layout(shape.bytes_max);
}

SlotRing::~SlotRing() { munmap(memory_, region_bytes_ * static_cast<size_t>(shape_.regions)); }

void SlotRing::Layout(size_t bytes) {
  message_bytes_ = bytes;
  stride_ = Stride(bytes);
  for (int region = 0; region < shape_.regions; ++region) {
    for (int slot = 0; slot < shape_.slots; ++slot) RestoreGuards(region, slot);
  }
}

void SlotRing::RestoreGuards(int region, int slot) const {
  uint8_t* data = Slot(region, slot);
  FillGuard(data - kGuardBytes, kGuardBytes);
  FillGuard(data + message_bytes_, kSpareCapacity + kGuardBytes);
}

absl::Status SlotRing::CheckGuards(int region, int slot, size_t bytes) const {
  const uint8_t* data = Slot(region, slot);
  const size_t before = VerifyGuard(data - kGuardBytes, kGuardBytes);
  if (before != kNoDifference) return Overwritten("before", kGuardBytes - before);
  const size_t after = VerifyGuard(data + bytes, kSpareCapacity + kGuardBytes);
  if (after != kNoDifference) return Overwritten("after", after);
  return absl::OkStatus();
}

}  // namespace bench
}  // namespace tcpx
