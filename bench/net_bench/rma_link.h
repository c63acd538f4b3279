// rma_link.h: a group of two ranks of one-sided transfers, as a link: a message is a put with its signal.
//
// Purpose: what NCCL's proxy does: the sender puts into the peer's slot and adds 1 to the peer's word, and tests its
//          oldest request; the receiver looks at its word, and calls rmaProgress while it has not changed.
// Threads: one driver. Lifetime: borrows host and slot rings, which outlive it.
// Units:   bytes.
// Errors:  set-up and Close: a Status. Traffic: Step::kFailed with ResultText.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/rma_host.h"

namespace tcpx {
namespace bench {

// What both directions of a group share.
struct RmaParts {
  RmaClient* client = nullptr;
  void* group = nullptr;
  void* contexts = nullptr;
  void* send_region = nullptr;  // mhandles
  void* receive_region = nullptr;
  void* signal_region = nullptr;
  uint8_t* send_base = nullptr;
  uint32_t peer = 0;
  alignas(64) uint64_t word = 0;  // that the peer adds to
};

class RmaSendChannel : public Channel {
 public:
  explicit RmaSendChannel(RmaParts* parts) : parts_(parts) {}

  Step Post(uint8_t* data, size_t bytes) override;
  Step Test(size_t* bytes) override;
  std::string Failure() const override { return failure_; }

 private:
  struct Message {
    void* request = nullptr;
    size_t bytes = 0;
  };
  static constexpr size_t kPlaces = NCCL_NET_MAX_REQUESTS;

  RmaParts* const parts_;
  std::array<Message, kPlaces> messages_ = {};
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  std::string failure_;
};

class RmaReceiveChannel : public Channel {
 public:
  explicit RmaReceiveChannel(RmaParts* parts) : parts_(parts) {}

  Step Post(uint8_t* data, size_t bytes) override;
  Step Test(size_t* bytes) override;
  std::string Failure() const override { return failure_; }

 private:
  RmaParts* const parts_;
  size_t bytes_ = 0;  // of every message
  uint64_t done_ = 0;
  std::string failure_;
};

class RmaLink : public Link {
 public:
  // Both workers call it at the same time.
  static absl::StatusOr<std::unique_ptr<RmaLink>> Create(RmaHost* host, int rank, Control* control,
                                                         SlotRing* send_slots, SlotRing* receive_slots,
                                                         Position* position);
  absl::Status Close() override;
  const std::vector<Channel*>& sends() const override { return sends_; }
  const std::vector<Channel*>& receives() const override { return receives_; }

 private:
  RmaLink(RmaHost* host, Position* position);
  absl::Status Connect(int rank, Control* control);
  absl::Status Register(SlotRing* send_slots, SlotRing* receive_slots);

  RmaHost* const host_;
  Position* const position_;
  RmaParts parts_;
  RmaSendChannel send_{&parts_};
  RmaReceiveChannel receive_{&parts_};
  std::vector<Channel*> sends_;
  std::vector<Channel*> receives_;
};

}  // namespace bench
}  // namespace tcpx
