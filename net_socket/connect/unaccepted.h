// unaccepted.h: limits the descriptors of connections that the application has not accepted.
//
// Purpose: anyone who has a ticket can complete connections, begin others, and dial health sockets that no connection
//          uses. Without a limit they could take every descriptor of the process. All of these together may take a
//          quarter of the process's limit, each counted when it comes. Beyond it one connection of each listen still
//          gets all its lanes, which is all that NCCL makes: so a flood can't take a peer's place.
// Threads: a place may go in any; the rest in the reactor.
// Units:   descriptors; nanoseconds of MonotonicNanos.
// Errors:  none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "net_socket/connect/key_turns.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class UnacceptedPlace;

// The connection of a listen that gets all its lanes. A stranger with the ticket can begin it and never complete it,
// again and again. So the place is given in turns: while others wait, a connection has it for a limited time; then the
// source (an IPv4 address, an IPv6 /64) that has waited longest gets it. One that has had it waits for those that asked
// before it does again.
class FreePlace {
 public:
  // A source that has not asked for this long no longer waits. A dialler that is refused asks again within a second
  // (tuning.h), one of an older build within NCCL_SOCKET_RETRY_CNT times NCCL_SOCKET_RETRY_SLEEP_MSEC: 3.4 s.
  static constexpr int64_t kWaitsNs = 5 * kSecond;
  // A connection is ended for a source only if that has waited for this long: this process itself may have been
  // stopped, and what has come meanwhile is read first. A guess.
  static constexpr int64_t kWaitsMinNs = 500 * kMillisecond;
  // Sources that can wait. A guess. Too low: a crowd of sources keeps a peer from waiting; too high: memory.
  static constexpr size_t kWaitingMax = 256;

  // Whether the connection of `place` may have what it asks for: there is room for it, or it has the free place, or
  // gets it now. Else its source waits.
  bool Ask(const std::shared_ptr<UnacceptedPlace>& place, bool has_room, int64_t now_ns);
  // The connection that is to leave the place to `source`, which has waited and is next; nullopt: its time, `turn_ns`,
  // is not over, or it is another source's turn.
  std::optional<ConnectionId> Overdue(const PeerSource& source, int64_t turn_ns, int64_t now_ns) const;

 private:
  struct Waiting {
    PeerSource source{};
    int64_t since_ns = 0;
    int64_t asked_ns = 0;  // the latest time
  };

  std::weak_ptr<UnacceptedPlace> holder_;
  int64_t since_ns_ = 0;        // it has it
  std::vector<Waiting> waits_;  // the next one first
};

// What one connection holds, until it is accepted or gone: nothing at first. `taken`: by all of them.
class UnacceptedPlace {
 public:
  UnacceptedPlace(std::shared_ptr<std::atomic<int64_t>> taken, std::shared_ptr<FreePlace> free_place,
                  const ConnectionId& id, const PeerSource& source)
      : taken_(std::move(taken)), free_place_(std::move(free_place)), id_(id), source_(source) {}
  ~UnacceptedPlace() { *taken_ -= held_; }
  UnacceptedPlace(const UnacceptedPlace&) = delete;
  UnacceptedPlace& operator=(const UnacceptedPlace&) = delete;

  FreePlace* free_place() const { return free_place_.get(); }
  const ConnectionId& id() const { return id_; }
  const PeerSource& source() const { return source_; }
  int64_t held() const { return held_; }
  void Hold(int64_t descriptors) {
    *taken_ += descriptors - held_;
    held_ = descriptors;
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> taken_;
  const std::shared_ptr<FreePlace> free_place_;  // of its listen
  const ConnectionId id_;
  const PeerSource source_;  // of its first hello
  int64_t held_ = 0;
};

}  // namespace tcpx
