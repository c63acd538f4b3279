// listening.h: one listen comm's part of the sockets that its device listens on.
//
// Threads: as the members say.
// Lifetime: shared by NCCL's listen comm and the acceptor.
// Errors:  OpenListeners: the local kernel's.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mutex.h"
#include "net_socket/comm/communicator.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/connect/accept_watch.h"
#include "net_socket/message/wire.h"
#include "net_socket/nic/device.h"

namespace tcpx {

struct PortRange;
class FreePlace;
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
  const Device* opened = nullptr;  // lives until unload
  std::vector<PeerNic> nics;       // where the device listens, by all its addresses
  int max_receives = 1;
  AcceptWait wait;

  std::atomic<int> ready_count{0};
  Mutex mutex;
  std::deque<Ready> ready TCPX_GUARDED_BY(mutex);
  bool closed TCPX_GUARDED_BY(mutex) = false;
  LineLimit lines;  // of accepted connections

  // In the reactor.
  absl::flat_hash_map<ConnectionId, Link<SocketTaker>> connections;  // ready or accepted; pending: a link to nobody
  size_t sweep_at = 16;                                              // so many of them
  std::shared_ptr<FreePlace> free_place;  // of those that are pending or ready; null: none has come yet
};

// False: that connection was accepted already, or its dialler has said that it is established. Else it is closed.
bool TakeBack(Listening* listening, const ConnectionId& id);

// From time to time: its connections that have been closed. A listen for one-sided transfers may get one after the
// other for as long as the job runs.
void ForgetClosed(Listening* listening);

// Opens what a device listens on, and tells where that is: by all its addresses, those of its first family in front.
// Without the other family it is as good as before.
absl::StatusOr<std::vector<PeerNic>> OpenListeners(const Device& device, const PortRange& range,
                                                   std::vector<OwnedFd>* fds);

// Says in both where `listening`, which has its device and ticket, is to be found.
void ListensOn(const std::vector<PeerNic>& nics, Listening* listening, Handle* handle);

}  // namespace tcpx
