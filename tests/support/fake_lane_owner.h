// fake_lane_owner.h: an owner of a lane that only remembers, and what a receiving one gets.
//
// Threads: one. Lifetime: an owner outlives its lanes. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "net_socket/message/lane_owner.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class FakeOwner final : public LaneOwner {
 public:
  bool CloseLane(int) override {
    ++closed;
    return true;
  }
  void LaneBack(int) override {}
  bool peer_left() const override { return false; }
  bool LoseLane(const absl::Status&, int) override {
    ++lost;
    return loses;
  }
  bool heals() const override { return loses; }
  void FailLane(absl::Status why, int which) override {
    status = std::move(why);
    lane = which;
    MoveTo(ConnectionState::kFailed);
  }
  using LaneOwner::MoveTo;

  absl::Status status;
  int lane = 0;
  bool loses = false;
  int closed = 0;
  int lost = 0;
};

inline std::string Frame(uint64_t sequence, const std::string& payload) {
  FrameHeader header;
  header.length = static_cast<uint32_t>(payload.size());
  header.sequence = sequence;
  header.message_bytes = payload.size();
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + payload;
}

}  // namespace tcpx
