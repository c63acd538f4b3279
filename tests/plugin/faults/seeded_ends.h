// seeded_ends.h: the two ends of a seeded connection, step by step.
//
// Purpose: a sender and a receiver that post, test oldest first as NCCL does, and keep count of what became of each
//          request. Buffers are kept until the run is over, so that a late write is found.
// Threads: one.
// Units:   bytes; messages are counted from 0.
// Errors:  `wrong` says what the plugin did that it must not do; a plugin's error only ends the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nccl/plugin_api.h"
#include "tests/support/pattern.h"
#include "tests/support/seed.h"

namespace tcpx {

inline constexpr size_t kSeededBytesMax = 300'000;
inline constexpr int kRequestSlots = 32;  // NCCL_NET_MAX_REQUESTS

// What the messages are: the same for both ends.
class SeededMessages {
 public:
  SeededMessages(uint64_t seed, int count) : seed_(seed), count_(count) {}

  int count() const { return count_; }
  size_t Bytes(int message) const;
  size_t Capacity(int message) const;
  int Tag(int message) const { return message % 7; }
  const Pattern& pattern() const;

 private:
  const uint64_t seed_;
  const int count_;
};

class SeededEnd {
 public:
  virtual ~SeededEnd() = default;

  // Posts, or tests the oldest; true when something came of it.
  bool PostOne();
  bool TestOldest();
  // The end has failed: every request ends, and every later call is refused.
  void EndAll();
  // Sends kRequestSlots more small messages. The comm must take all of them at once: no slot is missing.
  void FillSlots();
  // Nobody may write to what is deregistered here, nor to any of it after closing.
  void Deregister();
  void ArmAll();
  void CheckUntouched();

  const absl::Status& status() const { return status_; }
  const std::string& wrong() const { return wrong_; }
  bool finished() const { return status_.ok() && next_ == limit_ && in_flight_.empty(); }

 protected:
  struct Posted {
    Request* request = nullptr;
    int first = 0;
    int count = 1;
    bool optional = false;
  };

  SeededEnd(PluginApi* plugin, Comm* comm, const SeededMessages* messages, uint64_t seed);
  // Sets posted->request, or leaves it null.
  virtual absl::Status Post(Posted* posted) = 0;
  virtual void Done(const Posted& posted, const int* sizes) = 0;
  void Wrong(const std::string& text);
  MemoryRegion* Register(GuardedBuffer* buffer);

  PluginApi* const plugin_;
  Comm* const comm_;
  const SeededMessages* const messages_;
  Rng rng_;
  int next_ = 0;
  int limit_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;  // by message
  std::vector<MemoryRegion*> regions_;                   // by message; null: unregistered

 private:
  int window_;
  std::deque<Posted> in_flight_;
  std::vector<bool> armed_;  // by message: the buffer is guarded
  absl::Status status_;
  std::string wrong_;
};

class SeededSender final : public SeededEnd {
 public:
  SeededSender(PluginApi* plugin, Comm* comm, const SeededMessages* messages, uint64_t seed)
      : SeededEnd(plugin, comm, messages, seed) {}

 private:
  absl::Status Post(Posted* posted) override;
  void Done(const Posted& posted, const int* sizes) override;
};

class SeededReceiver final : public SeededEnd {
 public:
  SeededReceiver(PluginApi* plugin, Comm* comm, const SeededMessages* messages, uint64_t seed, int group_max)
      : SeededEnd(plugin, comm, messages, seed), group_max_(group_max) {}
  // Checks every message, after the last completion: also those that were reported before they had landed.
  void CheckAll();

 private:
  absl::Status Post(Posted* posted) override;
  void Done(const Posted& posted, const int* sizes) override;
  void Check(int message);

  const int group_max_;
};

}  // namespace tcpx
