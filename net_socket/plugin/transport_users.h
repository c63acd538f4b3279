// transport_users.h: who uses the transport, which runs exactly while someone does.
//
// Purpose: each user holds a TransportUse. The first one starts the transport; when the last one goes, it retires: its
//          sockets that linger are still served, and the next user starts another.
// Threads: under the plugin's mutex, the end of a TransportUse too.
// Lifetime: outlives every TransportUse.
// Errors:  Use: the transport's, and kUnknown after End.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "net_socket/plugin/transport.h"

namespace tcpx {

class TransportUsers;

// Someone uses the transport, until this ends. Users are: a v11+ context that has listened or connected, and, of older
// versions, each listen comm, unfinished connect and comm.
class TransportUse {
 public:
  TransportUse() = default;  // nobody

  // True exactly when nobody else uses it.
  bool last() const;
  bool held() const { return users_ != nullptr; }
  // One more user of the same transport; of none, if this is none.
  TransportUse Another() const;

 private:
  friend class TransportUsers;
  struct Leave {
    void operator()(TransportUsers* users) const;
  };

  explicit TransportUse(TransportUsers* users);

  std::unique_ptr<TransportUsers, Leave> users_;
};

class TransportUsers {
 public:
  using Starter = std::function<absl::StatusOr<std::unique_ptr<Transport>>()>;

  // `start` makes the transport where none runs.
  absl::StatusOr<TransportUse> Use(const Starter& start);
  // Null: nobody uses it.
  Transport* transport() const { return transport_.get(); }
  // Forgets the retired ones that are through. True exactly when none is left.
  bool ForgetEnded();
  // Hands out all retired ones, which hurry now. To let go of them waits until they are through: without the plugin's
  // mutex.
  std::vector<std::unique_ptr<Transport>> TakeRetired();
  // Ends all threads, within TCPX_LINGER; afterwards the transport gets no more users. `in_use`: comms, or threads of
  // the application, may still use it: it stays as it is, and this object with it.
  void End(bool in_use);

 private:
  friend class TransportUse;
  void Retire();

  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Transport>> retired_;
  int users_ = 0;
  bool ended_ = false;
};

}  // namespace tcpx
