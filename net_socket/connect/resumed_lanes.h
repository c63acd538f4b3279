// resumed_lanes.h: who asks for a lane of an established connection, and what becomes of that.
//
// Purpose: remembers each accepted connection whose lanes heal, also after the end of the listen that it came by. A
//          hello for one of its lanes, with the same ticket and an attempt that is newer than all before, brings a
//          socket: it is offered to the connection, and answered with how much of the stream has come.
// Threads: the reactor.
// Lifetime: a connection is forgotten some time after its end. Borrows the hellos, by whom it answers.
// Errors:  as answers to the dialler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net_socket/comm/redialler.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/pending_hello.h"
#include "net_socket/engine/link.h"
#include "net_socket/message/wire.h"

namespace tcpx {

struct Device;

class ResumedLanes {
 public:
  // A connection that heals.
  struct End {
    Ticket ticket{};                 // of its listen
    const Device* device = nullptr;  // the same; outlives the process's use of the plugin
    size_t lanes = 0;                // at first
    std::function<bool()> may_open;  // one more just now
    std::vector<uint32_t> attempts;  // the latest, by lane; so many may there be
    Link<SocketTaker> taker;
  };

  ResumedLanes(Runtime* runtime, PendingHellos* hellos) : runtime_(runtime), hellos_(hellos) {}

  void EnterInLoop(const ConnectionId& id, End end);
  // Whose connection the hello names, with its ticket; null: nobody's that heals.
  const Device* KnownInLoop(const Hello& hello) const;
  // Whether a hello of kind kResume may have its lane.
  HelloStatus AdmitInLoop(const Hello& hello);
  // Then: answers it, soon. `status`: what AdmitInLoop has said.
  void HelloInLoop(HelloSocket socket, HelloStatus status);
  void CloseInLoop() { ends_.clear(); }

 private:
  // False: its connection is in use just now.
  bool TryInLoop(const HelloSocket& socket, SocketOffer* offer);
  void AnswerInLoop(const HelloSocket& socket, HelloStatus status, uint64_t taken);

  Runtime* const runtime_;
  PendingHellos* const hellos_;
  absl::flat_hash_map<ConnectionId, End> ends_;
  size_t sweep_at_ = 16;
};

}  // namespace tcpx
