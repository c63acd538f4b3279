// dialler.h: connects: each a few sockets, hellos and answers, served by the reactor.
//
// Purpose: connect only starts a dial and later asks for its result by key. The key is all that is in NCCL's handle
//          buffer, so nothing that is written there can be taken for a pointer, and a forgotten connect leaks nothing.
// Threads: Start, Take and Cancel from any; the rest in the reactor.
// States:  its turn (dial_turns.h), lane 0 (dial_lane.h), then the others and, where another dial has not brought it up
//          yet, the health socket.
// Errors:  Take: kUnavailable with the address tried and the interface used; kInvalidArgument for an unknown key. A
//          failed dial fails its communicator; one that gets nowhere is a WARN after 5 s (dial_log.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/connect/dial_lane.h"
#include "net_socket/connect/dial_log.h"
#include "net_socket/connect/dial_turns.h"

namespace tcpx {

class Dialler {
 public:
  using Result = absl::StatusOr<std::unique_ptr<SendComm>>;

  // `secret`: null where none is shared.
  Dialler(Runtime* runtime, const Secret* secret);
  ~Dialler();

  // The key of the new dial; never 0.
  absl::StatusOr<uint64_t> Start(const DialRequest& request);
  // Null: not yet. A result is given once; after it, or an error, the key is unknown.
  Result Take(uint64_t key);
  // Gives a dial up; an unknown key is a no-op.
  void Cancel(uint64_t key);
  // Ends everything; the reactor still runs.
  void Close();

 private:
  class Dial;

  Runtime* const runtime_;
  const Secret* const secret_;
  Mutex mutex_;
  // By key; null: it is being dialled.
  std::map<uint64_t, Result> results_ TCPX_GUARDED_BY(mutex_);

  // In the reactor.
  DialLog log_;
  DialTurns turns_;
  // For peers with two addresses, by the first: the one that a dial reached, so that the next dial begins there.
  absl::flat_hash_map<std::string, SocketAddress> reached_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Dial>> dials_;
};

}  // namespace tcpx
