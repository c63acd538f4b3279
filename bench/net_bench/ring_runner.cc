#include "bench/net_bench/ring_runner.h"

#include <sched.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace bench {

absl::Status RingRunner::Run() {
  const uint64_t messages = order_.messages();
  while ((sends_done_ < messages || receives_done_ < messages) && status_.ok()) {
    bool moved = PostSend();
    moved |= PostReceives();
    moved |= TestSend();
    moved |= TestReceive();
    if (!moved && parts_.yield) sched_yield();
  }
  return status_;
}

// One per pass, as NCCL's proxy.
bool RingRunner::PostSend() {
  const uint64_t limit = std::min(order_.SendLimit(receives_done_), sends_done_ + static_cast<uint64_t>(parts_.window));
  if (sends_posted_ >= limit) return false;
  const RingPiece piece = order_.Sent(sends_posted_);
  const Step step =
      parts_.send->Post(reinterpret_cast<uint8_t*>(parts_.data + piece.begin), piece.count * sizeof(float));
  if (step == Step::kFailed) Fail("isend", parts_.send->Failure());
  if (step != Step::kDone) return false;
  ++sends_posted_;
  return true;
}

bool RingRunner::PostReceives() {
  const uint64_t limit = std::min(order_.messages(), receives_done_ + static_cast<uint64_t>(parts_.window));
  bool moved = false;
  while (receives_posted_ < limit) {
    uint8_t* slot = parts_.slots->Slot(0, static_cast<int>(receives_posted_ % parts_.window));
    const Step step = parts_.receive->Post(slot, parts_.slots->message_bytes());
    if (step == Step::kFailed) Fail("irecv", parts_.receive->Failure());
    if (step != Step::kDone) break;
    ++receives_posted_;
    moved = true;
  }
  return moved;
}

bool RingRunner::TestSend() {
  if (sends_done_ == sends_posted_) return false;
  size_t bytes = 0;
  const Step step = parts_.send->Test(&bytes);
  if (step == Step::kFailed) Fail("test of an isend", parts_.send->Failure());
  if (step != Step::kDone) return false;
  ++sends_done_;
  parts_.position->Tick();
  return true;
}

bool RingRunner::TestReceive() {
  if (receives_done_ == receives_posted_ || receives_done_ >= order_.ReceiveLimit(sends_done_)) return false;
  size_t bytes = 0;
  const Step step = parts_.receive->Test(&bytes);
  if (step == Step::kFailed) Fail("test of an irecv", parts_.receive->Failure());
  if (step != Step::kDone || !TakeIn(receives_done_, bytes)) return false;
  ++receives_done_;
  parts_.position->At(0, receives_done_);
  return true;
}

bool RingRunner::TakeIn(uint64_t message, size_t bytes) {
  const RingPiece piece = order_.Received(message);
  if (bytes != piece.count * sizeof(float)) {
    Fail("test of an irecv", absl::StrCat(bytes, " bytes instead of ", piece.count * sizeof(float)));
    return false;
  }
  const auto* received =
      reinterpret_cast<const float*>(parts_.slots->Slot(0, static_cast<int>(message % parts_.window)));
  float* target = parts_.data + piece.begin;
  if (!order_.Reduces(message)) {
    memcpy(target, received, bytes);
    return true;
  }
  for (size_t i = 0; i < piece.count; ++i) target[i] += received[i];
  return true;
}

void RingRunner::Fail(const char* what, const std::string& why) {
  if (status_.ok()) status_ = absl::UnknownError(absl::StrCat(what, ": ", why, " (", parts_.position->Describe(), ")"));
}

}  // namespace bench
}  // namespace tcpx
