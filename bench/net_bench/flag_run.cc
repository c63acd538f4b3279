#include "bench/net_bench/flag_run.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/net_bench/cpus.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {

FlagRun::FlagRun(const FlagOrder& order, Link* link, SlotRing* send_slots, SlotRing* receive_slots, Position* position)
    : order_(order),
      send_(link->sends()[0]),
      receive_(link->receives()[0]),
      send_slots_(send_slots),
      receive_slots_(receive_slots),
      position_(position) {}

absl::Status FlagRun::Run(FlagResult* result) {
  result_ = result;
  result->gaps_ns.clear();
  result->gaps_ns.reserve(order_.messages);
  std::thread gpu([this] { Gpu(); });
  while (status_.ok() && !Finished() && !wrong_.load(std::memory_order_relaxed)) {
    bool moved = false;
    if (sends()) moved |= MoveSends();
    if (receives()) moved |= MoveReceives();
    if (!moved && order_.yield) sched_yield();
  }
  if (!status_.ok()) stop_.store(true);
  gpu.join();
  if (wrong_.load()) {
    return absl::DataLossError(absl::StrCat("message ", consumed_.load(), " of ", order_.bytes, " bytes (",
                                            LineKindName(order_.kind), "): a line shows its flag and other data"));
  }
  return status_;
}

bool FlagRun::Finished() const {
  const uint64_t all = order_.messages;
  if (sends() && send_done_.load(std::memory_order_relaxed) < all) return false;
  return !receives() || (receive_done_ == all && consumed_.load(std::memory_order_relaxed) == all);
}

bool FlagRun::MoveSends() {
  bool moved = false;
  if (send_posted_ < filled_.load(std::memory_order_acquire)) {
    uint8_t* data = send_slots_->Slot(0, static_cast<int>(send_posted_ % static_cast<uint64_t>(order_.window)));
    const Step step = send_->Post(data, order_.bytes);
    if (step == Step::kFailed) Fail(absl::UnavailableError(send_->Failure()));
    if (step == Step::kDone) ++send_posted_, moved = true;
  }
  const uint64_t done = send_done_.load(std::memory_order_relaxed);
  if (done == send_posted_) return moved;
  size_t bytes = 0;
  const Step step = send_->Test(&bytes);
  if (step == Step::kFailed) Fail(absl::UnavailableError(send_->Failure()));
  if (step != Step::kDone) return moved;
  send_done_.store(done + 1, std::memory_order_release);
  if (!receives()) position_->At(0, done + 1);
  return true;
}

bool FlagRun::MoveReceives() {
  bool moved = false;
  const uint64_t room = consumed_.load(std::memory_order_acquire) + static_cast<uint64_t>(order_.window);
  if (receive_posted_ < std::min(order_.messages, room)) {
    uint8_t* data = receive_slots_->Slot(0, static_cast<int>(receive_posted_ % static_cast<uint64_t>(order_.window)));
    const Step step = receive_->Post(data, order_.bytes);
    if (step == Step::kFailed) Fail(absl::UnavailableError(receive_->Failure()));
    if (step == Step::kDone) ++receive_posted_, moved = true;
  }
  if (receive_done_ == receive_posted_) return moved;
  size_t bytes = 0;
  ++result_->tests;
  const Step step = receive_->Test(&bytes);
  if (step == Step::kFailed) Fail(absl::UnavailableError(receive_->Failure()));
  if (step != Step::kDone) return moved;
  position_->At(0, ++receive_done_);
  return true;
}

void FlagRun::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void FlagRun::Look() {
  if (order_.yield) sched_yield();
}

void FlagRun::Gpu() {
  if (!order_.gpu_cpus.empty()) RunOn(order_.gpu_cpus);
  int64_t start = MonotonicNanos(), last = start;
  for (uint64_t message = 0; message < order_.messages; ++message) {
    const bool first = order_.rank == 0;
    if (sends() && first && !Fill(message)) return;
    if (receives() && !Await(message)) return;
    if (sends() && !first && !Fill(message)) return;
    const int64_t now = MonotonicNanos();
    if (message >= order_.warmup) {
      result_->gaps_ns.push_back(now - last);
    } else {
      start = now;
    }
    last = now;
  }
  result_->elapsed_ns = last - start;
}

bool FlagRun::Fill(uint64_t message) {
  const uint64_t window = static_cast<uint64_t>(order_.window);
  while (send_done_.load(std::memory_order_acquire) + window <= message) {
    if (stop_.load(std::memory_order_relaxed)) return false;
    Look();
  }
  FillLines(order_.kind, order_.first_flag + message, send_slots_->Slot(0, static_cast<int>(message % window)),
            order_.bytes);
  filled_.store(message + 1, std::memory_order_release);
  return true;
}

bool FlagRun::Await(uint64_t message) {
  const uint8_t* data = receive_slots_->Slot(0, static_cast<int>(message % static_cast<uint64_t>(order_.window)));
  size_t line = 0;
  Seen seen;
  while ((seen = PollLines(order_.kind, order_.first_flag + message, data, order_.bytes, &line)) == Seen::kNotYet) {
    if (stop_.load(std::memory_order_relaxed)) return false;
    Look();
  }
  if (seen == Seen::kWrong) {
    wrong_.store(true);
    return false;
  }
  consumed_.store(message + 1, std::memory_order_release);
  return true;
}

}  // namespace bench
}  // namespace tcpx
