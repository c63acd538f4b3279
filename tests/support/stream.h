// stream.h: messages one way over one comm, many in flight, each byte known.
//
// Purpose: traffic that a test can stop in the middle: at any moment up to `window` requests are outstanding, and the
//          memory of their buffers can be replaced by fresh pages.
// Threads: one at a time; Deregister and Close of the comm also during Step, as NCCL's service thread does it.
// Units:   bytes; message k uses slot k % window, and its content depends on the slot only.
// Errors:  Step returns the plugin's first error for ever. A wrong byte or size ends the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "nccl/client/net_client.h"
#include "tests/support/seed.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

// Bytes that are no message's, all different: never written yet; put there once the plugin had let go.
inline constexpr uint8_t kBlank = 0xee;
inline constexpr uint8_t kFresh = 0x11;
inline constexpr uint8_t kPoison = 0x77;

class Stream {
 public:
  enum class Way { kSend, kReceive };
  struct Shape {
    size_t message_bytes = kSanitized ? size_t{256} << 10 : size_t{1} << 20;
    int window = 32;
    int64_t count = std::numeric_limits<int64_t>::max();
    // False: Step leaves the memory alone, so that another thread may replace it; a receiver then checks sizes only.
    bool checked = true;
  };

  Stream(NetClient* net, Way way, void* comm, const Shape& shape);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Posts what can be posted and tests the oldest request. If nothing has moved for long it sleeps a little,
  // since several tests share a CPU.
  ncclResult_t Step();
  // From here on Step only tests. For another thread than Step's.
  void StopPosting();
  // Steps until all messages are through, which must come to pass.
  void Finish();

  int64_t finished() const { return finished_.load(std::memory_order_relaxed); }
  int64_t in_flight() const { return posted_.load(std::memory_order_relaxed) - finished(); }
  bool complete() const { return finished() == shape_.count; }
  void* memory() const { return memory_; }
  size_t memory_bytes() const { return memory_bytes_; }

  // What NCCL does with the memory at the end: the plugin must have let go when Deregister returns.
  void Deregister();
  void ReplaceMemory(uint8_t byte);
  void RequireOnly(uint8_t byte) const;
  // After Deregister. In messages that have not arrived completely each byte is the sender's or was never written.
  void RequireUnfinishedPlausible() const;

 private:
  char* Slot(int64_t message) const {
    return memory_ + static_cast<size_t>(message % shape_.window) * shape_.message_bytes;
  }
  static uint8_t ByteAt(int64_t slot, size_t at);
  void Fill(int64_t message);
  void Check(int64_t message, int got) const;
  ncclResult_t Post();
  void PostAll();
  ncclResult_t TestOldest();

  NetClient* const net_;
  const Way way_;
  void* const comm_;
  const Shape shape_;
  const size_t memory_bytes_;
  char* memory_ = nullptr;
  void* memory_handle_ = nullptr;
  std::vector<void*> requests_;
  std::atomic<int64_t> posted_{0};
  std::atomic<int64_t> finished_{0};
  ncclResult_t result_ = ncclSuccess;
  std::mutex posting_mutex_;
  bool posting_ = true;
  int in_vain_ = 0;  // steps
};

// In both directions at once.
struct BothWays {
  BothWays(NetClient* net, const Ends& ends, const Stream::Shape& shape)
      : send(net, Stream::Way::kSend, ends.send, shape), receive(net, Stream::Way::kReceive, ends.receive, shape) {}

  void Deregister() {
    send.Deregister();
    receive.Deregister();
  }
  // Steps both until each has finished `messages` more and has requests outstanding.
  void RunFor(int64_t messages);
  // Steps both until all messages are through.
  void Finish();

  Stream send;
  Stream receive;
};

// Moves as many messages as `shape` says. What fails ends the process.
void Transfer(NetClient* net, const Ends& ends, const Stream::Shape& shape);

}  // namespace tcpx
