// dialler.h: connects: each a few sockets, hellos and answers, served by the reactor.
//
// Purpose: connect only starts a dial and later asks for its result by key. The key is all that stands in NCCL's handle
//          buffer, so nothing that is written there can be taken for a pointer, and a forgotten connect leaks nothing.
//
// Threads: Start, Take and Cancel from any; the rest in the reactor.
// States:  of a lane: dialling -> greeting -> answered; lane 0 first, then the others and, where another dial has not
//          brought it up yet, the health socket. A refused, timed-out,
//          unreachable or reset lane is dialled again after n x NCCL_SOCKET_RETRY_SLEEP_MSEC, NCCL_SOCKET_RETRY_CNT
//          times.
// Errors:  Take: kUnavailable with the address tried and the interface used; kInvalidArgument for an unknown key.
#ifndef TCPX_NET_SOCKET_DIALLER_H_
#define TCPX_NET_SOCKET_DIALLER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/traffic_class.h"
#include "net_socket/device.h"
#include "net_socket/send_comm.h"
#include "net_socket/wire.h"

namespace tcpx {

struct DialRequest {
  Handle handle;
  const Device* device = nullptr;
  uint64_t comm_id = 0;
  LogSink log = nullptr;
  int lanes = 1;
  int traffic_class = kNoTrafficClass;  // octet: of every attempt of every lane
  int sndbuf = -1;                      // of each lane; -1: as the parameters say
  bool same_host = false;
  std::shared_ptr<FailureGroup> group;  // null: failures do not spread
  bool repeat_warnings = false;
};

class Dialler {
 public:
  explicit Dialler(Runtime* runtime);
  ~Dialler();

  // The key of the new dial; never 0.
  absl::StatusOr<uint64_t> Start(const DialRequest& request);
  // Null: not yet. A result is given once; after it, or an error, the key is unknown.
  absl::StatusOr<std::unique_ptr<SendComm>> Take(uint64_t key);
  // Gives a dial up; an unknown key is a no-op.
  void Cancel(uint64_t key);
  // Ends everything; the reactor still runs.
  void Close();

 private:
  class Dial;
  class Lane;

  // What the two sides share of one dial.
  struct Result {
    std::mutex mutex;
    bool done = false;
    absl::Status status;
    std::unique_ptr<SendComm> comm;
  };

  Runtime* const runtime_;
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Result>> results_;  // under mutex_

  absl::flat_hash_map<uint64_t, std::unique_ptr<Dial>> dials_;  // in the reactor
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_DIALLER_H_
