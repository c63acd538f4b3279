#include "net_socket/receive/lane_stage.h"

#include <cstring>
#include <utility>

namespace tcpx {

LaneStage::~LaneStage() {
  if (borrowed_ != nullptr) pool_->Give(std::move(borrowed_));
}

void LaneStage::Borrow() {
  borrowed_ = pool_->Take();
  MoveTo(borrowed_.get());
  capacity_ = kStageBytes;
}

void LaneStage::GiveBack() {
  MoveTo(carry_);
  capacity_ = kCarryBytes;
  pool_->Give(std::move(borrowed_));
}

void LaneStage::MoveTo(char* place) {
  const size_t waiting = bytes();
  if (waiting > 0) std::memmove(place, data(), waiting);
  place_ = place;
  begin_ = 0;
  end_ = waiting;
}

}  // namespace tcpx
