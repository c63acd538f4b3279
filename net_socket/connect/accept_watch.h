// accept_watch.h: accepts that find nothing: what the log says of it, and when they are given up.
//
// Purpose: NCCL calls accept again and again, and a dialler may be minutes late, so waiting alone is no error. But
//          after a few seconds the log says where this end waits, and which lanes of a connection have come: firewalls
//          and NAT drop the SYNs of some lanes, or of all. It gives up only if waiting can't help: no dialler sends the
//          rest of a connection, or this host has lost the address.
//
// Threads: Waits from any; InLoop: in the reactor.
// States:  idle -> watched (accept has found nothing) -> idle (nobody asks, or accept has found something).
// Units:   nanoseconds.
// Lifetime: borrows the reactor; CloseInLoop before it stops. An AcceptWait may outlive it.
// Errors:  what is given up fails its communicator (dial_log.h), and accept says so.
#ifndef TCPX_NET_SOCKET_CONNECT_ACCEPT_WATCH_H_
#define TCPX_NET_SOCKET_CONNECT_ACCEPT_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/address.h"
#include "common/mutex.h"
#include "net_socket/connect/connect_bounds.h"
#include "net_socket/connect/dial_log.h"

namespace tcpx {

// The wait of one listen comm.
struct AcceptWait {
  std::shared_ptr<const Communicator> communicator;
  std::vector<SocketAddress> addresses;  // where it listens
  std::string where;                     // the same as text, with interfaces

  std::atomic<int64_t> asked_ns{0};  // when accept found nothing last; 0: it has found something since, or was closed
  std::atomic<bool> watched{false};
  std::atomic<bool> given_up{false};
  Mutex mutex;
  std::string failure TCPX_GUARDED_BY(mutex);  // why; empty exactly while not given up

  // In the reactor.
  int64_t progress_ns = 0;    // when a lane came last
  SocketAddress latest;       // from there
  int64_t incomplete_ns = 0;  // since when lanes have come and no whole connection; 0: not so
  int64_t lost_ns = 0;        // since when this host has none of the addresses; 0: it has one
};

class AcceptWatch {
 public:
  // A connection that lacks something.
  struct Partial {
    SocketAddress peer;
    size_t present = 0;  // lanes
    size_t lanes = 0;
    bool whole = false;  // only its dialler's word is missing
  };
  using FindPartial = std::function<std::optional<Partial>(const AcceptWait&)>;
  using FindAddresses = std::function<std::vector<SocketAddress>()>;

  // `partial`: the one with most lanes. `addresses`: this host's.
  AcceptWatch(Reactor* reactor, const AcceptBounds& bounds, FindPartial partial, FindAddresses addresses);

  // Accept has found nothing.
  void Waits(const std::shared_ptr<AcceptWait>& wait);
  // A lane has come; `whole`: with it all of its connection.
  void CameInLoop(AcceptWait* wait, const SocketAddress& from, bool whole);
  // A dialler has died that had every answer: nothing comes of its connection.
  void DiedInLoop(AcceptWait* wait, const SocketAddress& from);
  void CloseInLoop();

  // Why accept is given up; OK while it is not.
  static absl::Status Failure(AcceptWait* wait);

 private:
  struct Watched {
    std::shared_ptr<AcceptWait> wait;
    Reactor::TimerId timer;
  };

  void WatchInLoop(const std::shared_ptr<AcceptWait>& wait);
  // How long until it is looked at.
  int64_t LookAfterNs(const AcceptWait& wait) const;
  // The same after a look, which may end the wait.
  int64_t LookInLoop(AcceptWait* wait);
  void UnwatchInLoop(AcceptWait* wait);
  bool LostInLoop(const AcceptWait& wait);
  // Empty: goes on.
  std::string WhyHopelessInLoop(AcceptWait* wait);
  std::string DescribeInLoop(const AcceptWait& wait) const;
  void GiveUpInLoop(AcceptWait* wait, const std::string& why);

  Reactor* const reactor_;
  const AcceptBounds bounds_;
  const FindPartial partial_;
  const FindAddresses find_addresses_;

  // In the reactor.
  DialLog log_;
  absl::flat_hash_map<AcceptWait*, Watched> watched_;
  std::vector<SocketAddress> addresses_;  // of this host
  int64_t addresses_ns_ = 0;              // as of then; 0: never asked for
  bool closed_ = false;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_ACCEPT_WATCH_H_
