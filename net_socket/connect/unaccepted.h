// unaccepted.h: limits the descriptors of connections that the application has not accepted.
//
// Purpose: anyone who has a ticket can complete connections, begin others, and dial health sockets that no connection
//          uses. Without a limit they could take every descriptor of the process. All of these together may take a
//          quarter of the process's limit, each counted when it comes. Beyond it one connection of each listen still
//          gets all its lanes, which is all that NCCL makes: so a flood can't take a peer's place.
//
// Threads: a place may go in any; the rest in the reactor.
// Units:   descriptors.
// Errors:  none.
// Lifetime: a place may outlive this object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tcpx {

// What one connection holds, until it is accepted or gone.
class UnacceptedPlace {
 public:
  // The connection of a listen that gets all its lanes: the first that asked since the one before was accepted or gone.
  using First = std::weak_ptr<UnacceptedPlace>;

  UnacceptedPlace(std::shared_ptr<std::atomic<int64_t>> taken, std::shared_ptr<First> first)
      : taken_(std::move(taken)), first_(std::move(first)) {}
  ~UnacceptedPlace() { *taken_ -= held_; }
  UnacceptedPlace(const UnacceptedPlace&) = delete;
  UnacceptedPlace& operator=(const UnacceptedPlace&) = delete;

  First* first() const { return first_.get(); }
  int64_t held() const { return held_; }
  void Hold(int64_t descriptors) {
    *taken_ += descriptors - held_;
    held_ = descriptors;
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> taken_;
  const std::shared_ptr<First> first_;
  int64_t held_ = 0;
};

class Unaccepted {
 public:
  // They may take one part in kShare of the process's descriptors. Source: chosen, not measured; sockets of strangers
  // and bulk lanes may take a quarter each, so this leaves the last one to the application.
  static constexpr int64_t kShare = 4;

  // Of a connection of the listen that has `first`. It holds nothing yet.
  std::shared_ptr<UnacceptedPlace> MakePlace(std::shared_ptr<UnacceptedPlace::First> first) const {
    return std::make_shared<UnacceptedPlace>(taken_, std::move(first));
  }

  // Whether this many more fit. `others`: health sockets that no connection uses. `limit`: the process's; negative:
  // unknown.
  bool HasRoom(int64_t descriptors, int64_t others, int64_t limit) const {
    return limit < 0 || *taken_ + others + descriptors <= limit / kShare;
  }
  // The same for the connection of `place`, which may be its listen's first.
  bool HasRoomFor(const std::shared_ptr<UnacceptedPlace>& place, int64_t descriptors, int64_t others,
                  int64_t limit) const {
    if (place->first()->expired()) *place->first() = place;
    return place->first()->lock() == place || HasRoom(descriptors, others, limit);
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> taken_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace tcpx
