// control.h: the side channel between two workers: commands, handles, results, and where both begin.
//
// Purpose: what NCCL's bootstrap is for NCCL. A stream socket: a socketpair on one machine, TCP between two.
// Threads: one per end. Blocks without a deadline of its own: the supervisor ends a worker that makes no progress.
// Units:   bytes. Structs travel as they lie in memory: both ends are the same build (the hello checks it).
// Errors:  kUnavailable when the other end is gone, else the kernel's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fd.h"

namespace tcpx {
namespace bench {

class Control {
 public:
  explicit Control(OwnedFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  absl::Status SendBytes(const void* data, size_t bytes);
  absl::Status ReceiveBytes(void* data, size_t bytes);

  template <class T>
  absl::Status Send(const T& value) {
    static_assert(std::is_trivially_copyable<T>::value, "travels as bytes");
    return SendBytes(&value, sizeof(value));
  }
  template <class T>
  absl::Status Receive(T* value) {
    static_assert(std::is_trivially_copyable<T>::value, "travels as bytes");
    return ReceiveBytes(value, sizeof(*value));
  }

  // A length, then the bytes. A length above `bytes_max` is kInvalidArgument.
  absl::Status SendBlob(const std::vector<uint8_t>& blob);
  absl::Status ReceiveBlob(std::vector<uint8_t>* blob, size_t bytes_max);

  // Says `said`, if any, while it hears what comes by `in`, which may be this one, into `heard`, if any. However much
  // both sides say at once, neither waits for the other to hear it.
  absl::Status Exchange(const std::vector<uint8_t>* said, Control* in, std::vector<uint8_t>* heard, size_t bytes_max);

  // Both ends return within some microseconds of each other: neither sleeps. The end that opens is released first.
  absl::Status Meet(bool opens);

 private:
  absl::Status SpinForByte();

  OwnedFd fd_;
};

// The two ends of one channel within a machine.
absl::StatusOr<std::pair<std::unique_ptr<Control>, std::unique_ptr<Control>>> ControlPair();

// Waits for one caller on `port` (0: the kernel chooses) and says on stderr where it listens. No time limit.
absl::StatusOr<std::unique_ptr<Control>> ListenForControl(int port);
// `host` is a name or a numeric address. Refused dials are repeated for `patience_s`.
absl::StatusOr<std::unique_ptr<Control>> DialControl(const std::string& host, int port, int patience_s);

}  // namespace bench
}  // namespace tcpx
