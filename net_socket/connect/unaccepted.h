// unaccepted.h: what connections hold that the application has not accepted.
//
// Purpose: who has a ticket can complete connections, dial health sockets for none, and take every descriptor with
//          them. All of these together get a quarter of the process's; beyond that a listen has one connection, which
//          is what NCCL makes of each: so no crowd takes a peer's place.
// Threads: any.
// Units:   descriptors.
// Lifetime: a place may outlive this.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace tcpx {

class Unaccepted {
 public:
  // One of so many parts of its descriptors a process has for them.
  static constexpr int64_t kShare = 4;

  // Those of one connection, until it is accepted or gone. `of_listen`: counts the connections of its listen.
  std::shared_ptr<const void> Take(int64_t descriptors, std::shared_ptr<std::atomic<int>> of_listen) {
    ++*of_listen;
    *taken_ += descriptors;
    const auto give_back = [taken = taken_, descriptors, of_listen](const void*) {
      *taken -= descriptors;
      --*of_listen;
    };
    return std::shared_ptr<const void>(taken_.get(), give_back);
  }

  // Whether so many more fit, with `others` that are held already. `limit`: of the process; below 0: unknown.
  bool HasRoom(int64_t descriptors, int64_t others, int64_t limit) const {
    return limit < 0 || *taken_ + others + descriptors <= limit / kShare;
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> taken_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace tcpx
