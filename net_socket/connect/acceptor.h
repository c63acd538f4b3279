// acceptor.h: the listening sockets, one per interface of a device and process, and the hellos of peers that dial them.
//
// Purpose: every listen of a device shares its socket (a fused device has one on each interface); its ticket, carried
//          in the handle, tells whose peer a dialler is. All waiting for peers happens in the reactor; accept only
//          looks whether a connection is complete.
// Threads: Listen, Accept and CloseListen from any; Close before the reactor stops; the rest in the reactor.
// States:  a lane: hello (pending_hello.h) -> waiting with its connection (pending_connections.h) -> part of a
//          ReceiveComm.
// Errors:  Listen: the local kernel's. A stranger (wrong magic, ticket, lane, silence) costs one socket until
//          TCPX_HELLO_TIMEOUT, and no log line per socket (rejected_peers.h).
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "net_socket/connect/accept_watch.h"
#include "net_socket/connect/listening.h"
#include "net_socket/connect/pending_connections.h"
#include "net_socket/connect/pending_hello.h"
#include "net_socket/connect/rejected_peers.h"
#include "net_socket/connect/resumed_lanes.h"
#include "net_socket/nic/device.h"

namespace tcpx {

class Acceptor {
 public:
  // `secret`: null where none is shared.
  Acceptor(Runtime* runtime, const Secret* secret);

  // Opens the device's socket with its first listen. *handle is what the peers need. `listening` says whose it is.
  absl::StatusOr<std::shared_ptr<Listening>> Listen(const Device& device, std::shared_ptr<Listening> listening,
                                                    Handle* handle);
  // Null: no complete connection yet. An error: none will come (accept_watch.h).
  absl::StatusOr<std::unique_ptr<ReceiveComm>> Accept(const std::shared_ptr<Listening>& listening);
  // Connections that nobody accepted are reset.
  void CloseListen(const std::shared_ptr<Listening>& listening);
  // Ends everything; the reactor still runs.
  void Close();

 private:
  class Listener;

  // All of the lane but its descriptor.
  LaneSocket ConfigureInLoop(int fd, const Hello& hello, const Device* device);
  void HelloInLoop(HelloSocket socket);
  // Where its ticket leads: to the device of a listen, or of its connection, whose lanes heal; null: nowhere.
  const Device* DeviceInLoop(const Hello& hello);
  // Whether a lane may come, to *pending, or a health socket.
  HelloStatus AdmitInLoop(const Hello& hello, const SocketAddress& from, PendingConnection** pending);
  // It is established.
  void HandOutInLoop(const ConnectionId& id, PendingConnection* pending);
  std::shared_ptr<Listening> Find(const Ticket& ticket);

  Runtime* const runtime_;
  Mutex mutex_;
  std::map<int, std::vector<PeerNic>> listen_addresses_ TCPX_GUARDED_BY(mutex_);  // by device
  absl::flat_hash_map<Ticket, std::shared_ptr<Listening>> listenings_ TCPX_GUARDED_BY(mutex_);

  AcceptWatch accept_watch_;
  // In the reactor.
  RejectedPeers rejected_;
  PendingHellos hellos_;
  ResumedLanes resumed_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  PendingConnections pending_;
};

}  // namespace tcpx
