#include "tests/plugin/traffic/traffic_run.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

// Buffers up to this size are kept apart, so that a short message does not occupy 8 MiB.
constexpr size_t kSmallBuffer = 256 << 10;
constexpr size_t kCapacityMax = kMessageMax + (64 << 10);
constexpr uint64_t kPhaseMessages = 200;

Rng MessageRng(uint64_t seed, uint64_t message, uint64_t purpose) { return Rng(seed + message * 8 + purpose); }

}  // namespace

size_t TrafficPlan::Bytes(uint64_t message) const {
  Rng rng = MessageRng(seed_, message, 0);
  const uint64_t kind = rng.Between(1, 1000);
  if (kind <= 120) return 0;
  if (kind <= 450) return rng.Between(1, 256);
  if (kind <= 700) return rng.Between(1, 4096);
  if (kind <= 730) return rng.Between((64 << 10) - 2, (64 << 10) + 2);  // around the express size
  if (kind <= 950) return rng.Between(4 << 10, 64 << 10);
  if (kind <= 996) return rng.Between(64 << 10, 256 << 10);
  return rng.Between(256 << 10, kMessageMax);
}

size_t TrafficPlan::Capacity(uint64_t message) const {
  Rng rng = MessageRng(seed_, message, 1);
  if (rng.OneIn(2)) return Bytes(message);
  return Bytes(message) + rng.Between(1, rng.OneIn(4) ? 64 << 10 : 512);
}

int TrafficPlan::Window(uint64_t message, int end) const {
  Rng rng = MessageRng(seed_, message / kPhaseMessages, 2 + static_cast<uint64_t>(end));
  return rng.OneIn(4) ? static_cast<int>(rng.Between(1, 2)) : static_cast<int>(rng.Between(1, kWindowMax));
}

uint64_t TrafficPlan::Lag(uint64_t message) const {
  if (!lags_) return 0;
  Rng rng = MessageRng(seed_, message / kPhaseMessages, 4);
  return rng.OneIn(2) ? 0 : rng.Between(1, kWindowMax);
}

std::unique_ptr<GuardedBuffer> TrafficEnd::TakeBuffer(size_t bytes) {
  auto& kept = bytes <= kSmallBuffer ? small_ : large_;
  if (kept.empty()) return std::make_unique<GuardedBuffer>(bytes <= kSmallBuffer ? kSmallBuffer : kCapacityMax, false);
  auto buffer = std::move(kept.back());
  kept.pop_back();
  return buffer;
}

void TrafficEnd::GiveBuffer(std::unique_ptr<GuardedBuffer> buffer) {
  (buffer->bytes_max() <= kSmallBuffer ? small_ : large_).push_back(std::move(buffer));
}

absl::Status TrafficSender::Step(StepResult* result) {
  *result = StepResult::kNothing;
  absl::Status status = Post(result);
  if (status.ok()) status = TestOldest(result);
  if (finished()) *result = StepResult::kFinished;
  return status;
}

absl::Status TrafficSender::Post(StepResult* result) {
  if (next_ == plan_->messages()) return absl::OkStatus();
  if (in_flight_.size() >= static_cast<size_t>(plan_->Window(next_, 0))) {
    counters_->sender_stuck.store(true);
    return absl::OkStatus();
  }
  const size_t bytes = plan_->Bytes(next_);
  auto buffer = TakeBuffer(bytes);
  std::memcpy(buffer->data(), plan_->pattern().Bytes(next_), bytes);
  void* request = nullptr;
  absl::Status status =
      PluginStatus(net_->Isend(comm_, buffer->data(), bytes, plan_->Tag(next_), nullptr, nullptr, &request), "isend");
  if (!status.ok() || request == nullptr) {
    GiveBuffer(std::move(buffer));
    return status;
  }
  in_flight_.push_back({next_++, request, std::move(buffer)});
  counters_->sends_posted.store(next_);
  *result = StepResult::kProgress;
  return absl::OkStatus();
}

absl::Status TrafficSender::TestOldest(StepResult* result) {
  if (in_flight_.empty()) return absl::OkStatus();
  InFlight& oldest = in_flight_.front();
  const size_t bytes = plan_->Bytes(oldest.message);
  int done = 0;
  int size = -1;
  absl::Status status = PluginStatus(net_->Test(oldest.request, &done, &size), "test of a send");
  if (!status.ok() || done == 0) return status;
  // From here on the buffer is ours: what the plugin still read would arrive wrong.
  std::memset(oldest.buffer->data(), 0x5A, bytes);
  GiveBuffer(std::move(oldest.buffer));
  in_flight_.pop_front();
  counters_->sender_stuck.store(false);
  *result = StepResult::kProgress;
  return absl::OkStatus();
}

absl::Status TrafficReceiver::Step(StepResult* result) {
  *result = StepResult::kNothing;
  absl::Status status = Post(result);
  if (status.ok()) status = TestOldest(result);
  if (finished()) *result = StepResult::kFinished;
  return status;
}

bool TrafficReceiver::MayPost() const {
  if (next_ == plan_->messages() || in_flight_.size() >= static_cast<size_t>(plan_->Window(next_, 1))) return false;
  const uint64_t wanted = std::min(next_ + plan_->Lag(next_), plan_->messages());
  return counters_->sends_posted.load() >= wanted || counters_->sender_stuck.load() || plan_->Lag(next_) == 0;
}

absl::Status TrafficReceiver::Post(StepResult* result) {
  if (!MayPost()) return absl::OkStatus();
  size_t capacity = plan_->Capacity(next_);
  auto buffer = TakeBuffer(capacity);
  buffer->Arm(capacity);
  void* data = buffer->data();
  int tag = plan_->Tag(next_);
  void* request = nullptr;
  absl::Status status =
      PluginStatus(net_->Irecv(comm_, 1, &data, &capacity, &tag, nullptr, nullptr, &request), "irecv");
  if (!status.ok() || request == nullptr) {
    GiveBuffer(std::move(buffer));
    return status;
  }
  in_flight_.push_back({next_++, request, std::move(buffer)});
  *result = StepResult::kProgress;
  return absl::OkStatus();
}

absl::Status TrafficReceiver::TestOldest(StepResult* result) {
  if (in_flight_.empty()) return absl::OkStatus();
  InFlight& oldest = in_flight_.front();
  int done = 0;
  int size = -1;
  absl::Status status = PluginStatus(net_->Test(oldest.request, &done, &size), "test of a receive");
  if (!status.ok() || done == 0) return status;
  const uint64_t message = oldest.message;
  const size_t bytes = plan_->Bytes(message);
  if (size != static_cast<int>(bytes)) {
    return absl::DataLossError(absl::StrCat("message ", message, " has ", bytes, " bytes, but test said ", size));
  }
  std::string wrong = plan_->pattern().Check(message, oldest.buffer->data(), bytes);
  if (wrong.empty()) wrong = oldest.buffer->Check(bytes, plan_->Capacity(message));
  if (!wrong.empty()) return absl::DataLossError(absl::StrCat("message ", message, ": ", wrong));
  if (counters_->received_total != nullptr) counters_->received_total->fetch_add(1);
  GiveBuffer(std::move(oldest.buffer));
  in_flight_.pop_front();
  *result = StepResult::kProgress;
  return absl::OkStatus();
}

namespace {

absl::Status Stuck(const char* who) { return absl::DeadlineExceededError(absl::StrCat(who, ": no progress in time")); }

// Steps one end until it has finished. `stop` ends it early, because the other end failed.
template <class End>
absl::Status RunEnd(End* end, std::atomic<bool>* stop, const char* who) {
  Deadline deadline;
  StepResult result = StepResult::kNothing;
  while (result != StepResult::kFinished && !stop->load()) {
    absl::Status status = end->Step(&result);
    if (status.ok() && result == StepResult::kNothing && !deadline.Yield()) status = Stuck(who);
    if (!status.ok()) {
      stop->store(true);
      return status;
    }
    if (result == StepResult::kProgress) deadline.Restart();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTraffic(NetClient* net, const Ends& pair, const TrafficPlan& plan,
                        std::atomic<uint64_t>* received_total) {
  TrafficCounters counters{received_total};
  TrafficSender sender(net, pair.send, &plan, &counters);
  TrafficReceiver receiver(net, pair.receive, &plan, &counters);
  Rng rng(TestSeed());
  Deadline deadline;
  StepResult sent = StepResult::kNothing, received = StepResult::kNothing;
  while (sent != StepResult::kFinished || received != StepResult::kFinished) {
    absl::Status status;
    // In turn, but not strictly: either end may get several steps.
    for (uint64_t i = rng.Between(0, 3); i > 0 && status.ok(); --i) status = sender.Step(&sent);
    for (uint64_t i = rng.Between(0, 3); i > 0 && status.ok(); --i) status = receiver.Step(&received);
    if (!status.ok()) return status;
    if (sent == StepResult::kProgress || received == StepResult::kProgress) {
      deadline.Restart();
    } else if (!deadline.Yield()) {
      return Stuck("both ends");
    }
  }
  return absl::OkStatus();
}

absl::Status RunTrafficOnTwoThreads(NetClient* net, const Ends& pair, const TrafficPlan& plan,
                                    std::atomic<uint64_t>* received_total) {
  TrafficCounters counters{received_total};
  TrafficSender sender(net, pair.send, &plan, &counters);
  TrafficReceiver receiver(net, pair.receive, &plan, &counters);
  std::atomic<bool> stop{false};
  absl::Status sent;
  std::thread thread([&] { sent = RunEnd(&sender, &stop, "the sender"); });
  absl::Status received = RunEnd(&receiver, &stop, "the receiver");
  thread.join();
  return received.ok() ? sent : received;
}

}  // namespace tcpx
