#include "bench/net_bench/mixed_run.h"

#include <sched.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

uint64_t Word(const uint8_t* data) {
  uint64_t word = 0;
  memcpy(&word, data, sizeof word);
  return word;
}

void SetWord(uint64_t word, uint8_t* data) { memcpy(data, &word, sizeof word); }

}  // namespace

MixedRun::MixedRun(const MixedOrder& order, Link* link, SlotRing* send_slots, SlotRing* receive_slots,
                   Position* position)
    : order_(order),
      stream_(order.rank == 0 ? link->sends()[1] : link->receives()[1]),
      stream_slots_(order.rank == 0 ? send_slots : receive_slots),
      position_(position),
      send_{link->sends()[0], send_slots->Slot(0, 0)},
      receive_{link->receives()[0], receive_slots->Slot(0, 0)} {}

absl::Status MixedRun::Run(MixedResult* result) {
  result_ = result;
  while (status_.ok() && !(StreamDone() && finished_)) {
    bool moved = MoveStream();
    if (!finished_) moved |= order_.rank == 0 ? MoveAsker() : MoveEcho();
    if (!moved && order_.yield) sched_yield();
  }
  return status_;
}

bool MixedRun::MoveStream() {
  const uint64_t limit = std::min(order_.messages, stream_done_ + static_cast<uint64_t>(order_.window));
  bool moved = false;
  while (stream_posted_ < limit) {
    uint8_t* data = stream_slots_->Slot(1, static_cast<int>(stream_posted_ % order_.window));
    const Step step = stream_->Post(data, order_.stream_bytes);
    Check(step, stream_, "post of the stream");
    if (step != Step::kDone) break;
    ++stream_posted_;
    moved = true;
  }
  size_t bytes = 0;
  while (stream_done_ < stream_posted_) {
    const Step step = stream_->Test(&bytes);
    Check(step, stream_, "test of the stream");
    if (step != Step::kDone) break;
    position_->At(1, ++stream_done_);
    moved = true;
    if (stream_done_ == std::max<uint64_t>(order_.warmup, 1)) counted_from_ns_ = MonotonicNanos();
    if (StreamDone()) result_->elapsed_ns = MonotonicNanos() - counted_from_ns_;
  }
  return moved;
}

bool MixedRun::Post(Turn* turn, size_t bytes) {
  if (turn->posted) return false;
  const Step step = turn->channel->Post(turn->data, bytes);
  Check(step, turn->channel, "post of the ping-pong");
  turn->posted = step == Step::kDone;
  return turn->posted;
}

bool MixedRun::Finished(Turn* turn, size_t bytes) {
  if (!turn->posted) return false;
  size_t got = 0;
  const Step step = turn->channel->Test(&got);
  Check(step, turn->channel, "test of the ping-pong");
  if (step != Step::kDone) return false;
  if (turn == &receive_ && got != bytes && status_.ok()) {
    status_ = absl::DataLossError(absl::StrCat("a ping of ", bytes, " bytes arrived with ", got));
  }
  return true;
}

// The receive is posted before the question goes out, as NCCL does.
bool MixedRun::MoveAsker() {
  bool moved = Post(&receive_, order_.ping_bytes);
  if (receive_.posted && !send_.posted) {
    last_ = StreamDone();
    SetWord(pings_ << 1 | uint64_t{last_}, send_.data);
    asked_ns_ = MonotonicNanos();
    moved |= Post(&send_, order_.ping_bytes);
  }
  if (!send_done_) moved |= send_done_ = Finished(&send_, order_.ping_bytes);
  if (!receive_done_) {
    receive_done_ = Finished(&receive_, order_.ping_bytes);
    if (receive_done_) Answered();
    moved |= receive_done_;
  }
  if (!send_done_ || !receive_done_) return moved;
  send_done_ = receive_done_ = send_.posted = receive_.posted = false;
  finished_ = last_;
  ++pings_;
  return true;
}

void MixedRun::Answered() {
  const int64_t now = MonotonicNanos();
  if (Word(receive_.data) != Word(send_.data) && status_.ok()) {
    status_ = absl::DataLossError(absl::StrCat("the answer to ping ", pings_, " is another one's"));
  }
  position_->At(0, pings_);
  // If the stream ends earlier, the ping-pong does not run under load.
  if (counted_from_ns_ > 0 && asked_ns_ >= counted_from_ns_ && !last_) result_->gaps_ns.push_back(now - asked_ns_);
}

bool MixedRun::MoveEcho() {
  bool moved = Post(&receive_, order_.ping_bytes);
  if (!receive_done_ && Finished(&receive_, order_.ping_bytes)) {
    receive_done_ = moved = true;
    last_ = (Word(receive_.data) & 1) != 0;
    SetWord(Word(receive_.data), send_.data);
  }
  if (!receive_done_) return moved;
  moved |= Post(&send_, order_.ping_bytes);
  if (!Finished(&send_, order_.ping_bytes)) return moved;
  receive_done_ = send_.posted = receive_.posted = false;
  finished_ = last_;
  return true;
}

void MixedRun::Check(Step step, const Channel* channel, const char* what) {
  if (step != Step::kFailed || !status_.ok()) return;
  status_ = absl::UnknownError(absl::StrCat(what, ": ", channel->Failure(), " (", position_->Describe(), ")"));
}

}  // namespace bench
}  // namespace tcpx
