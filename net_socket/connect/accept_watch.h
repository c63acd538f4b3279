// accept_watch.h: reports accepts that wait for a peer, and decides when to give up.
//
// Purpose: NCCL calls accept again and again, and a dialler may be minutes late, so waiting alone is no error. After a
//          few seconds the log says where this end waits, and which lanes of a connection have arrived: a firewall or
//          NAT may drop the SYNs of some lanes, or of all. It gives up only if waiting can't help: the rest of a
//          connection never arrives, its dialler has died, or this host has lost the address.
// Threads: Waits and Failure: any; names that end in InLoop: the reactor.
// States:  idle -> watched (accept found nothing) -> idle (accept found a connection, or is no longer called).
// Units:   nanoseconds.
// Lifetime: borrows the reactor; CloseInLoop before it stops. An AcceptWait may outlive it.
// Errors:  giving up fails the communicator (dial_log.h), and accept returns the reason.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
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

  std::atomic<int64_t> asked_ns{0};  // the latest accept that found nothing; 0: found one since, or closed
  std::atomic<bool> watched{false};
  Mutex mutex;
  std::string failure TCPX_GUARDED_BY(mutex);  // the reason; empty while not given up

  // In the reactor.
  int64_t progress_ns = 0;    // when the latest lane arrived
  SocketAddress latest;       // where that lane came from
  int64_t incomplete_ns = 0;  // since when lanes have arrived without a whole connection; 0: there are none
  int64_t lost_ns = 0;        // since when this host has had none of the addresses; 0: it has one
  Reactor::TimerId timer{0, 0};
};

class AcceptWatch {
 public:
  // A connection that is not complete yet.
  struct Partial {
    SocketAddress peer;
    size_t present = 0;  // lanes that have arrived
    size_t lanes = 0;
    bool whole = false;  // only the dialler's confirmation is missing
  };
  using FindPartial = std::function<std::optional<Partial>(const AcceptWait&)>;
  using FindAddresses = std::function<std::vector<SocketAddress>()>;

  // `partial` returns the incomplete connection with the most lanes, `addresses` the addresses of this host.
  AcceptWatch(Reactor* reactor, const AcceptBounds& bounds, FindPartial partial, FindAddresses addresses)
      : reactor_(reactor),
        bounds_(bounds),
        partial_(std::move(partial)),
        find_addresses_(std::move(addresses)),
        log_(reactor) {}

  // Call this each time accept finds no connection.
  void Waits(const std::shared_ptr<AcceptWait>& wait);
  // A lane has arrived. `whole`: it completes its connection.
  void CameInLoop(AcceptWait* wait, const SocketAddress& from, bool whole);
  // All lanes had arrived, and their dialler died before it confirmed every answer: the connection is lost.
  void DiedInLoop(AcceptWait* wait, const SocketAddress& from);
  void CloseInLoop();

  // Why accept has given up; OK while it has not.
  static absl::Status Failure(AcceptWait* wait);

 private:
  // The time until the next check.
  int64_t LookAfterNs(const AcceptWait& wait) const;
  // Checks the wait, and may end it. Returns the time until the next check.
  int64_t LookInLoop(AcceptWait* wait);
  void UnwatchInLoop(AcceptWait* wait);
  bool LostInLoop(const AcceptWait& wait);
  // Why waiting can't help; empty: it still may.
  std::string WhyHopelessInLoop(AcceptWait* wait);
  std::string DescribeInLoop(const AcceptWait& wait) const;
  void GiveUpInLoop(AcceptWait* wait, const std::string& why);

  Reactor* const reactor_;
  const AcceptBounds bounds_;
  const FindPartial partial_;
  const FindAddresses find_addresses_;

  // In the reactor.
  DialLog log_;
  absl::flat_hash_set<std::shared_ptr<AcceptWait>> watched_;
  std::vector<SocketAddress> addresses_;  // of this host
  int64_t addresses_ns_ = 0;              // when they were read; 0: never
  bool closed_ = false;
};

}  // namespace tcpx
