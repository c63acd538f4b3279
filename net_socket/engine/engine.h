// engine.h: moves bytes for one progress thread; two implementations, chosen at run time.
//
// Purpose: the narrow seam between lanes and the kernel interface that serves them (io_uring, or epoll with
//          non-blocking calls). Both give the same results to the byte; tests/contract runs one suite on each and on a
//          fake.
// Use:     an operation is a fixed slot owned by its lane. Submit hands it over; it belongs to the engine until Reap
//          gives it back as a completion. At most one send and one receive per socket may be with the engine: unlinked
//          operations of one direction would overtake each other.
// Threads: all functions by the owner thread alone, but Wake, which any thread may call.
// Units:   bytes and nanoseconds. A result is a byte count, or a negative errno.
// Errors:  as results: 0 from a receive is the end of the stream, -ECANCELED what Cancel ended before it moved a byte.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/params.h"

namespace tcpx {

struct IoOp {
  enum class Kind : uint8_t {
    kSend,          // completes when at least one byte was taken
    kSendZeroCopy,  // the same, without a copy: its bytes may be the kernel's beyond that (Completion)
    kReceive,       // completes when at least one byte came, or at the end of the stream
    kWritable,      // completes when the socket takes data again (TCP_NOTSENT_LOWAT counts); result 0
  };
  static constexpr int kIovMax = 4;

  Kind kind = Kind::kReceive;
  bool in_flight = false;  // true exactly while the engine has it
  bool cancelling = false;
  int fd = -1;
  int iov_count = 0;
  iovec iov[kIovMax];
  msghdr message{};       // the engine's
  void* owner = nullptr;  // the lane's
};

// A kSendZeroCopy may complete twice: with its result, and, where that said `held`, with a release once the kernel
// no longer holds any of its bytes: the peer has acknowledged them, or the socket was reset. It is in flight until
// then.
struct Completion {
  IoOp* op = nullptr;
  int result = 0;        // of a release: 1 when the kernel copied after all or won't tell, else 0
  bool held = false;     // a release follows
  bool release = false;  // this is one
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const char* name() const = 0;
  // True exactly when it takes kSendZeroCopy. The kernel may refuse a single one all the same.
  virtual bool zero_copy() const = 0;
  // Takes `op` over: kind, fd and iov are set, the rest is the engine's. It reaches the kernel at the next Reap at the
  // latest.
  virtual void Submit(IoOp* op) = 0;
  // Ends an operation soon: it still completes, once, with what it had moved or -ECANCELED.
  virtual void Cancel(IoOp* op) = 0;
  // The socket is about to be closed; no operation on it is with the engine.
  virtual void Forget(int fd) = 0;
  // Gives up to `max` completions. With none at hand waits up to `timeout_ns` (0: not at all, negative: for ever) for
  // one, or for Wake. Returns how many.
  virtual int Reap(Completion* completions, int max, int64_t timeout_ns) = 0;
  // Ends a wait in Reap, or the next one. From any thread.
  virtual void Wake() = 0;
};

// Created and used by one thread. The io_uring one fails where the kernel, seccomp or a sysctl refuses: the status says
// what an operator can do about it.
absl::StatusOr<std::unique_ptr<Engine>> MakeUringEngine();
// How many sets of setup flags there are, best first: of Linux 6.1, 6.0, 5.19, and none. The same engine with the first
// one from `first_rung` on that the kernel takes, so that tests see here what an older kernel offers.
inline constexpr int kUringRungs = 4;
absl::StatusOr<std::unique_ptr<Engine>> MakeUringEngineFrom(int first_rung);
absl::StatusOr<std::unique_ptr<Engine>> MakeEpollEngine();
// Which of them the kernel takes; -1: none.
int UringRung();

// Finds out once which engine works here. `choice` auto takes io_uring where it works. *reason gets the text for the
// log.
EngineChoice ProbeEngine(EngineChoice choice, std::string* reason);

}  // namespace tcpx
