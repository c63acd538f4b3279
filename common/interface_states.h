// interface_states.h: which of our addresses' interfaces are out, asked of the kernel at most once a second each.
//
// Purpose: thousands of connections wonder at the same moment whether their interface is down, and each answer is a
//          list of all addresses of the host.
// Threads: any.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  what the kernel does not tell is not out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/address.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace tcpx {

// The interface with this address where it is out; "with ADDRESS" where none has it; empty: it runs.
std::string DownInterfaceOf(const SocketAddress& local);

class InterfaceStates {
 public:
  // How long a look counts: thousands of connections may ask at once.
  static constexpr int64_t kKeptNs = kSecond;
  using Look = std::function<std::string(const SocketAddress&)>;

  explicit InterfaceStates(Look look = DownInterfaceOf) : look_(std::move(look)) {}

  // As DownInterfaceOf, at most kKeptNs ago.
  std::string Down(const SocketAddress& local, int64_t now_ns);

 private:
  struct State {
    std::string down;
    int64_t looked_ns = 0;
  };

  const Look look_;
  Mutex mutex_;
  std::map<std::string, State> states_ TCPX_GUARDED_BY(mutex_);  // by address
};

}  // namespace tcpx
