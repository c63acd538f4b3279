// ring_flow.h: the messages of ring_rank one way, each checked, and how often it calls.
//
// Threads: one. Lifetime: a Flow borrows table and comm. Errors: wrong bytes end the process (TCPX_REQUIRE); a Step
// returns the plugin's.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {

// Every second message is small, so that all lanes are busy.
inline constexpr size_t kMessageBytes = 200000;
inline constexpr size_t kSmallBytes = 4000;
inline constexpr int kWindow = 4;

inline bool Flag(const char* name) { return getenv(name) != nullptr && *getenv(name) == '1'; }

// NCCL calls again and again. Here many ranks share few CPUs: one that finds nothing to do so often sleeps between two
// calls, as long as a Deadline does, and each sleeps after every second window of messages.
class Calls {
 public:
  void Made(int64_t moved) {
    vain_ = std::exchange(moved_, moved) == moved ? vain_ + 1 : 0;
    if (vain_ > kSpins) absl::SleepFor(absl::Microseconds(Deadline::NapMicros(vain_ - kSpins)));
    if (moved - rested_ < 2 * kWindow) return;
    rested_ = moved;
    absl::SleepFor(absl::Milliseconds(5));
  }

 private:
  static constexpr int kSpins = 20;

  int64_t moved_ = 0;
  int64_t rested_ = 0;
  int vain_ = 0;
};

// Messages one way. Each holds its number, eight bytes at a time.
class Flow {
 public:
  enum class Way { kSend, kReceive };

  Flow(NetClient* net, Way way, void* comm) : net_(net), way_(way), comm_(comm), memory_(kWindow * kWords) {
    const ncclResult_t registered =
        net_->RegMr(comm_, memory_.data(), memory_.size() * sizeof(uint64_t), NCCL_PTR_HOST, &region_);
    TCPX_REQUIRE(registered == ncclSuccess || registered == ncclRemoteError);
  }

  ncclResult_t Step() {
    ncclResult_t result = ncclSuccess;
    while (posting_ && result == ncclSuccess && posted_ - finished_ < kWindow && Post(&result)) {
    }
    if (result == ncclSuccess && posted_ > finished_) result = TestOldest();
    return result;
  }

  // After an error: each request ends with one, or was done, and so does every later call.
  void RequireAllEnded() {
    for (; finished_ < posted_; ++finished_) {
      int done = 0;
      const ncclResult_t result = net_->Test(requests_[finished_ % kWindow], &done, nullptr);
      TCPX_REQUIRE(result != ncclSuccess || done == 1, "a request is left over");
    }
    ncclResult_t result = ncclSuccess;
    TCPX_REQUIRE(!Post(&result) && result != ncclSuccess, "a failed comm takes requests");
  }

  void Deregister() { TCPX_REQUIRE(net_->DeregMr(comm_, region_) == ncclSuccess); }
  void SetPosting(bool posting) { posting_ = posting; }
  int64_t finished() const { return finished_; }
  int64_t posted() const { return posted_; }

 private:
  static constexpr size_t kWords = kMessageBytes / sizeof(uint64_t);

  // In RING_VARY by a hash of the number that cares for its high bits too (Knuth's multiplicative one).
  size_t BytesOf(int64_t message) const {
    if (!vary_) return message % 2 == 0 ? kMessageBytes : kSmallBytes;
    const uint64_t hash = (static_cast<uint64_t>(message) * 0x9E3779B97F4A7C15) >> 32;
    const size_t bytes_max = hash % 3 == 0 ? (small_ ? kMessageBytes / 8 : kMessageBytes) : kSmallBytes;
    return hash % 11 == 0 ? 0 : hash % (bytes_max / sizeof(uint64_t)) * sizeof(uint64_t);
  }
  uint64_t* Slot(int64_t message) { return memory_.data() + static_cast<size_t>(message % kWindow) * kWords; }

  bool Post(ncclResult_t* result) {
    void* request = nullptr;
    void* data = Slot(posted_);
    size_t bytes = BytesOf(posted_);
    int tag = 0;
    if (way_ == Way::kSend) {
      for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) Slot(posted_)[i] = static_cast<uint64_t>(posted_) + i;
      *result = net_->Isend(comm_, data, bytes, tag, region_, nullptr, &request);
    } else {
      *result = net_->Irecv(comm_, 1, &data, &bytes, &tag, &region_, nullptr, &request);
    }
    if (request == nullptr) return false;
    requests_[posted_++ % kWindow] = request;
    return true;
  }

  ncclResult_t TestOldest() {
    int done = 0;
    int size = 0;
    const ncclResult_t result = net_->Test(requests_[finished_ % kWindow], &done, &size);
    if (result != ncclSuccess || done == 0) return result;
    const size_t bytes = BytesOf(finished_);
    TCPX_REQUIRE(size == static_cast<int>(bytes), size, " bytes");
    for (size_t i = 0; way_ == Way::kReceive && i < bytes / sizeof(uint64_t); ++i) {
      TCPX_REQUIRE(Slot(finished_)[i] == static_cast<uint64_t>(finished_) + i, "message ", finished_, " word ", i);
    }
    ++finished_;
    return ncclSuccess;
  }

  NetClient* const net_;
  const Way way_;
  void* const comm_;
  std::vector<uint64_t> memory_;
  void* region_ = nullptr;
  void* requests_[kWindow] = {};
  const bool vary_ = Flag("RING_VARY");
  const bool small_ = Flag("RING_SMALL");
  bool posting_ = true;
  int64_t posted_ = 0;
  int64_t finished_ = 0;
};

}  // namespace tcpx
