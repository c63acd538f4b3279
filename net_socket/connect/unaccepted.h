// unaccepted.h: limits the descriptors of connections that the application has not accepted.
//
// Purpose: anyone who has a ticket can complete connections, and dial health sockets that no connection uses. Without a
//          limit they could take every descriptor of the process. All of these together may take a quarter of the
//          process's limit; beyond it each listen may still have one connection, which is all that NCCL makes. So a
//          flood can't take a peer's place.
//
// Threads: any.
// Units:   descriptors.
// Errors:  none.
// Lifetime: a place may outlive this object.
#ifndef TCPX_NET_SOCKET_CONNECT_UNACCEPTED_H_
#define TCPX_NET_SOCKET_CONNECT_UNACCEPTED_H_

#include <atomic>
#include <cstdint>
#include <memory>

namespace tcpx {

class Unaccepted {
 public:
  // They may take one part in kShare of the process's descriptors. Source: chosen, not measured; sockets of strangers
  // and bulk lanes may take a quarter each, so this leaves the last one to the application.
  static constexpr int64_t kShare = 4;

  // Counts the descriptors of one connection until the returned place goes: when the connection is accepted or gone.
  // `of_listen`: how many such connections its listen has.
  std::shared_ptr<const void> Take(int64_t descriptors, std::shared_ptr<std::atomic<int>> of_listen) {
    ++*of_listen;
    *taken_ += descriptors;
    const auto give_back = [taken = taken_, descriptors, of_listen](const void*) {
      *taken -= descriptors;
      --*of_listen;
    };
    return std::shared_ptr<const void>(taken_.get(), give_back);
  }

  // Whether this many more fit. `others`: health sockets that no connection uses. `limit`: the process's; negative:
  // unknown.
  bool HasRoom(int64_t descriptors, int64_t others, int64_t limit) const {
    return limit < 0 || *taken_ + others + descriptors <= limit / kShare;
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> taken_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_UNACCEPTED_H_
