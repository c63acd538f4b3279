// record_middle.h: somebody between two ranks who knows the protocol, and lacks only the secret.
//
// Purpose: relays all sockets that are dialled while it lives, lanes and health sockets, tells by their hello which is
//          which, passes whole records on, and at one of them does what an attack says.
// Threads: one of its own. Lifetime: the destructor ends it and its sockets.
// Units:   records count from 0 on, by socket and direction.
// Errors:  a kernel that refuses sockets ends the process.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/address.h"
#include "common/fd.h"
#include "net_socket/message/wire.h"
#include "tests/support/seed.h"

namespace tcpx {

// A direction of a socket, at the newest socket of its kind.
struct Place {
  bool health = false;  // else a lane
  int connection = 0;   // in the order in which they were dialled; a health socket serves several
  int lane = 0;
  bool forward = true;  // what the dialler says
};

struct RecordAttack {
  enum class Kind {
    kNone,
    kFlip,        // a bit of the ciphertext or the tag
    kFlipLength,  // a bit of the length
    kDrop,
    kRepeat,
    kSwap,          // with the next one
    kPutIn,         // a record of `from` is put into `at` too
    kEnd,           // both ends hear an end in order; what the kernels have acknowledged has passed, as with kReset
    kReset,         // nobody but the kernels ends this socket
    kCutReset,      // a part of it passes, nothing of what is acknowledged after it, and a reset follows
    kFlipReset,     // it is changed, and a reset follows
    kSwallowReset,  // from it on nothing passes, though it is acknowledged, and a moment later there is a reset
    kReplay,        // a reset; then all that had been said before is said first on the next socket of the place
  };
  Kind kind = Kind::kNone;
  Place at;
  // Whose record is put in; and where `at` may say nothing for long, whose record is the moment of an end or a reset.
  std::optional<Place> from;
  int record = 1;  // the first that it may be
};

class RecordMiddle {
 public:
  // Listens; everything that is dialled to `target` from here on comes here.
  RecordMiddle(const SocketAddress& target, const RecordAttack& attack, uint64_t seed);
  ~RecordMiddle();

  // All of it is done.
  bool attacked() const { return attacked_.load(); }

 private:
  enum class End { kNone, kInOrder, kReset };
  struct Flow {
    int number = 0;
    OwnedFd ends[2];         // the dialler's, the acceptor's
    bool ended[2] = {};      // said by them
    std::string held[2];     // of what they say: less than a record, or than a part of the handshake
    std::string waiting[2];  // to be said to them
    int parts[2] = {};       // of the handshake, that have passed
    int records[2] = {};
    bool bare = false;  // a refusal: what follows is no record
    Hello hello;
    int connection = -1;
    End end = End::kNone;   // once nothing waits
    bool lossless = false;  // and all that is acknowledged has passed
    int drained = 0;        // ends
    bool said_end = false;
  };

  void Run();
  void AcceptOne();
  void Read(Flow* flow, int from);
  void Write(Flow* flow, int to);
  // True: it is over.
  bool Ends(Flow* flow);
  // Bytes of the next part of what `from` says, which is either of the handshake or a record; 0: not known yet.
  size_t NextBytes(const Flow& flow, int from, absl::string_view held) const;
  void Take(Flow* flow, int from);
  void PartPasses(Flow* flow, int from, const std::string& part);
  bool Is(const Flow& flow, int from, const Place& place) const;
  Flow* Newest(const Place& place);
  // What becomes of a record that `from` has said.
  void Attack(Flow* flow, int from, std::string* record);
  // True: the attack has begun before, and this was what follows.
  bool GoesOn(Flow* flow, int from, std::string* record);
  void Begin(Flow* target, const std::string& said, std::string* record);
  // All that `from` has said passes; from here on it is not acknowledged either.
  void Drain(Flow* flow, int from);
  // True: that is done for both.
  bool Drained(Flow* flow);
  static bool Idle(const Flow& flow) { return flow.waiting[0].empty() && flow.waiting[1].empty(); }

  const SocketAddress target_;
  const RecordAttack attack_;
  Rng rng_;
  OwnedFd listener_;
  std::vector<std::unique_ptr<Flow>> flows_;  // oldest first
  std::vector<std::array<uint8_t, 16>> connections_;
  int accepted_ = 0;
  int begun_ = -1;                                 // number of the flow where the attack has begun
  std::string said_;                               // kReplay: all records of the place. kSwap: the first of both
  std::chrono::steady_clock::time_point over_at_;  // of a flow that swallows, or ends in order
  std::atomic<bool> attacked_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tcpx
