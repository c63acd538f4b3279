// listening.h: one listen comm's part of the sockets that its device listens on.
//
// Threads: as the members say.
// Lifetime: shared by NCCL's listen comm and the acceptor.
// Errors:  OpenListeners: the local kernel's.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/fd.h"
#include "common/line_limit.h"
#include "common/mutex.h"
#include "net_socket/comm/communicator.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/connect/accept_watch.h"
#include "net_socket/message/wire.h"
#include "net_socket/nic/device.h"

namespace tcpx {

struct PortRange;
class UnacceptedPlace;

// Complete, and not accepted.
struct Ready {
  ConnectionId id{};
  std::unique_ptr<ReceiveComm> comm;
  bool established = false;  // its dialler has said so, and never begins anew
  std::string line;          // for the log, once it is accepted
  std::shared_ptr<UnacceptedPlace> place;
};

// One listen comm's part of the shared socket.
struct Listening {
  Ticket ticket{};
  std::shared_ptr<const Communicator> communicator = std::make_shared<Communicator>();
  int device = 0;
  const Device* opened = nullptr;  // `device`, which lives until unload
  std::vector<PeerNic> nics;       // where the device listens, by all its addresses
  int max_receives = 1;
  AcceptWait wait;

  std::atomic<int> ready_count{0};
  Mutex mutex;
  std::deque<Ready> ready TCPX_GUARDED_BY(mutex);
  bool closed TCPX_GUARDED_BY(mutex) = false;
  LineLimit lines;  // of accepted connections
  // Of those that are pending or ready, the one that gets all its lanes (unaccepted.h). In the reactor.
  const std::shared_ptr<std::weak_ptr<UnacceptedPlace>> first = std::make_shared<std::weak_ptr<UnacceptedPlace>>();

  absl::flat_hash_set<ConnectionId> connections;  // pending, ready or accepted; in the reactor
};

// False: that connection was accepted already, or its dialler has said that it is established. Else it is closed.
bool TakeBack(Listening* listening, const ConnectionId& id);

// Opens what a device listens on, and tells where that is: by all its addresses, those of its first family in front.
// Without the other family it is as good as before.
absl::StatusOr<std::vector<PeerNic>> OpenListeners(const Device& device, const PortRange& range,
                                                   std::vector<OwnedFd>* fds);

// Says in both where `listening`, which has its device and ticket, is to be found.
void ListensOn(const std::vector<PeerNic>& nics, Listening* listening, Handle* handle);

}  // namespace tcpx
