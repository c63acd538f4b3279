// relay.h: moves frames between TUN devices as the network says, until it is stopped.
//
// Purpose: one loop: what is due goes out, what is there comes in, lines are answered. It sleeps until shortly before
//          the next piece is due and spins from then on, so a piece leaves within some microseconds of its time
//          wherever the thread has a CPU.
// Threads: one.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  a Status of the set-up. Packets nobody has the address of are counted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/netns/wire/command_line.h"
#include "bench/netns/wire/control.h"
#include "bench/netns/wire/frame.h"
#include "bench/netns/wire/network.h"
#include "bench/netns/wire/tun.h"

namespace tcpx {
namespace wire {

class Relay {
 public:
  explicit Relay(const Options& options);
  // Makes the devices and the control's socket.
  absl::Status Open();
  // Returns once `stop_fd` can be read.
  void Run(int stop_fd);
  // A line for each path in each direction: "to=END path=N flows= segments= bytes= lost= late= full= cut=", and one of
  // the relay's own: how many frames went out, how many of them more than 100 us and more than 1 ms late.
  std::string Stats() const;

 private:
  bool SendDue();
  // True: there was something.
  bool ReadEnd(size_t end);
  void Wait(int stop_fd);
  std::string Answer(absl::string_view line);
  int EndOf(const Address& address) const;

  const Options options_;
  BufferPool pool_;  // outlives what holds its buffers
  Network network_;
  std::vector<Tun> tuns_;
  std::vector<int64_t> empty_at_;  // per end: when it was last seen empty
  ControlServer control_;
  uint64_t frames_ = 0;
  uint64_t behind_100us_ = 0;
  uint64_t behind_1ms_ = 0;
  uint64_t unknown_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace wire
}  // namespace tcpx
