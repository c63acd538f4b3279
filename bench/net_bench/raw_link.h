// raw_link.h: the floor: the same bytes over bare, non-blocking, spinning TCP sockets, without any protocol.
//
// Purpose: what the kernel alone makes possible on this machine in this minute. A message is one send call (more only
//          where the socket buffer is full) and the receiver knows its size. With several sockets per connection
//          message i travels whole on socket i modulo their number.
// Threads: one driver.
// Units:   bytes.
// Errors:  set-up: a Status; then Step::kFailed with the errno text, or "the peer closed".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/control.h"
#include "common/fd.h"

namespace tcpx {
namespace bench {

// One direction over `fds`, which belong to the link.
class RawChannel : public Channel {
 public:
  RawChannel(bool sends, std::vector<int> fds);
  Step Post(uint8_t* data, size_t bytes) override;
  Step Test(size_t* bytes) override;
  std::string Failure() const override { return failure_; }

 private:
  struct Message {
    uint8_t* data;
    size_t bytes;
    size_t moved;
  };
  // A message of window up to 32; a power of two, so that the place is a mask.
  static constexpr uint64_t kPlaces = 64;

  Message& At(uint64_t number) { return ring_[number % kPlaces]; }
  bool Complete(uint64_t number) { return At(number).moved == At(number).bytes; }
  // Moves what it can of the oldest incomplete message of `socket`; false exactly after a failure.
  bool Pump(size_t socket);
  bool MoveSome(int fd, Message* message, bool* blocked);

  const bool sends_;
  const std::vector<int> fds_;
  std::vector<uint64_t> next_;  // per socket: number of its oldest incomplete message
  Message ring_[kPlaces];
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  std::string failure_;
};

struct RawShape {
  int connections = 1;
  int sockets = 1;         // per connection
  bool both_ways = true;   // else each direction has sockets of its own
  std::string congestion;  // empty: the system's default
};

class RawLink : public Link {
 public:
  // Both workers call it at the same time. Rank 1 listens on its own address of the control connection, or on 127.0.0.1
  // when that is a socketpair; rank 0 dials.
  static absl::StatusOr<std::unique_ptr<RawLink>> Create(const RawShape& shape, int rank, Control* control);

  const std::vector<Channel*>& sends() const override { return sends_; }
  const std::vector<Channel*>& receives() const override { return receives_; }

  // Congestion control in force, from the first socket.
  std::string congestion() const;

 private:
  void AddChannels(const RawShape& shape, int rank);
  void AddChannel(bool sends, std::vector<int> fds);

  std::vector<OwnedFd> fds_;
  std::vector<std::unique_ptr<RawChannel>> channels_;
  std::vector<Channel*> sends_;
  std::vector<Channel*> receives_;
};

}  // namespace bench
}  // namespace tcpx
