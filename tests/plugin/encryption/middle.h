// middle.h: somebody between two ends, who relays their sockets and may change what passes.
//
// Purpose: listens on loopback, dials for each socket that it accepts, and passes bytes on both ways; keeps a copy of
//          all.
// Threads: one of its own. Lifetime: the destructor ends it and its sockets.
// Errors:  a kernel that refuses sockets ends the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/address.h"
#include "common/fd.h"

namespace tcpx {

struct Attack {
  // The last three are followed by a reset, once `bytes` more have passed; kSwallowReset lets none of them pass. With
  // kResetReplay, what was said after the first `bytes` is said again after those of the next sockets.
  enum class Kind { kNone, kFlip, kDrop, kRepeat, kForeign, kEnd, kReset, kFlipReset, kSwallowReset, kResetReplay };
  Kind kind = Kind::kNone;
  int socket = 0;       // in the order in which they were dialled
  bool forward = true;  // what the dialler says
  size_t at = 0;        // byte of that direction
  size_t bytes = 1;     // dropped, repeated (those before `at`), or put in
};

class Middle {
 public:
  Middle(const SocketAddress& target, const Attack& attack);
  ~Middle();

  SocketAddress address() const { return address_; }
  // It has come to the attack's byte.
  bool attacked() const { return attacked_.load(); }
  // All that has passed, of all sockets.
  std::string Passed();
  // What the dialler and the acceptor of each open socket have said.
  std::vector<std::pair<std::string, std::string>> Said();

 private:
  struct Relay {
    OwnedFd ends[2];         // the dialler's, the acceptor's
    std::string passed[2];   // said by them
    std::string waiting[2];  // for the other one
    bool resets = false;     // once nothing waits
  };

  void Run();
  void AcceptOne();
  // False: the relay is over.
  bool Move(Relay* relay, int index, int from);
  // Changes what is said after the attack's byte, where a reset follows; false: the relay is over.
  bool ChangeMore(Relay* relay, int from, std::string* bytes);
  void Replay(const Relay& relay, std::string* bytes);
  // What becomes of `bytes`, which `from` has said; false: the relay is over.
  bool Change(Relay* relay, int index, int from, std::string* bytes);

  const SocketAddress target_;
  const Attack attack_;
  OwnedFd listener_;
  SocketAddress address_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Relay>> relays_;  // null: over
  std::string over_;                            // what those have passed
  std::string said_;                            // of the socket that was reset, to be said again
  std::atomic<bool> attacked_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tcpx
