// buffers.h: the slots that messages are sent from and received into.
//
// Purpose: one region per connection and direction, cut into a ring of slots as NCCL cuts its protocol buffers; each
//          slot starts on a page, with guard bytes before and after it.
// Threads: one driver. Lifetime: registrations of a region end before the buffers do.
// Units:   bytes.
// Errors:  Create: kResourceExhausted when the kernel gives no memory, kInvalidArgument when more is asked than half of
//          what the machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tcpx {
namespace bench {

// What a posted receive may take more than the message has; a plugin must leave it alone.
inline constexpr size_t kSpareCapacity = 128;

class SlotRing {
 public:
  struct Shape {
    int regions = 1;
    int slots = 1;         // per region
    size_t bytes_max = 0;  // largest message
  };
  static absl::StatusOr<std::unique_ptr<SlotRing>> Create(const Shape& shape);
  ~SlotRing();
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  bool Holds(int regions, int slots, size_t bytes) const {
    return regions > 0 && regions <= shape_.regions && slots > 0 && slots <= shape_.slots && bytes <= shape_.bytes_max;
  }
  // Lays the slots out for messages of `bytes` and writes all guards. `bytes` is at most bytes_max.
  void Layout(size_t bytes);
  uint8_t* Slot(int region, int slot) const { return Region(region) + kPage + static_cast<size_t>(slot) * stride_; }
  // OK exactly when the guards around a slot that holds `bytes` are unchanged, spare capacity included.
  absl::Status CheckGuards(int region, int slot, size_t bytes) const;
  void RestoreGuards(int region, int slot) const;

  uint8_t* Region(int region) const { return memory_ + static_cast<size_t>(region) * region_bytes_; }
  size_t message_bytes() const { return message_bytes_; }
  size_t region_bytes() const { return region_bytes_; }

 private:
  static constexpr size_t kPage = 4096;

  SlotRing(const Shape& shape, size_t region_bytes, uint8_t* memory);
  static size_t Stride(size_t bytes);

  Shape shape_;
  size_t region_bytes_;
  uint8_t* memory_;
  size_t message_bytes_ = 0;
  size_t stride_ = 0;
};

}  // namespace bench
}  // namespace tcpx
