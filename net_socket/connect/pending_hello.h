// pending_hello.h: sockets that were accepted and have not said their whole hello.
//
// Purpose: here a peer is distinguished from a stranger. A socket that says a hello, and proves the shared secret if
//          there is one (handshake.h), gets through to the acceptor; another costs one descriptor for at most
//          TCPX_HELLO_TIMEOUT, counted from the accept and not from the last byte. There are at most a quarter of the
//          descriptor limit and 4,096 of them, and they get none of its last eighth: when one more comes, the source
//          with most of them (an IPv4 address, an IPv6 /64) loses its oldest, so a crowd makes room for a peer and no
//          peer for a crowd.
// Threads: the reactor.
// States:  hello -> whole (handed on), refused or forgotten.
// Errors:  none; a socket that is no peer's gets a line in the log (rejected_peers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "common/address.h"
#include "common/fd.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/handshake.h"
#include "net_socket/connect/key_turns.h"
#include "net_socket/connect/rejected_peers.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// A socket whose hello was understood, and is still to be answered.
struct HelloSocket {
  const Hello& hello() const { return handshake.hello(); }

  AcceptHandshake handshake;
  OwnedFd fd;
  SocketAddress from;
};

class PendingHellos {
 public:
  // A process keeps the last one of this many parts of its descriptors for its own sockets and files.
  static constexpr long kSpareShare = 8;

  // `known`: whether the hello's ticket is one that is open.
  PendingHellos(Runtime* runtime, const Secret* secret, RejectedPeers* rejected, AcceptHandshake::Known known,
                std::function<void(HelloSocket)> whole);
  ~PendingHellos();

  void AddInLoop(OwnedFd fd, const SocketAddress& from);
  // Closes one that can best be spared; false where there is none.
  bool MakeRoomInLoop();
  void CloseInLoop();

  // True exactly when it is accepted and the whole answer was sent; else the caller closes the socket.
  bool AnswerInLoop(const HelloSocket& socket, const Answer& answer);

 private:
  class PendingHello;

  void RefuseInLoop(PendingHello* hello, HelloStatus why);
  HelloSocket TakeInLoop(PendingHello* hello);

  Runtime* const runtime_;
  const Secret* const secret_;
  RejectedPeers* const rejected_;
  const AcceptHandshake::Known known_;
  const std::function<void(HelloSocket)> whole_;
  KeyTurns turns_;
  uint64_t arrived_ = 0;
  int64_t scarce_until_ns_ = 0;                               // descriptors
  std::map<uint64_t, std::unique_ptr<PendingHello>> hellos_;  // in the order of their arrival
  absl::flat_hash_map<PeerSource, int> crowd_;                // how many of them each source has
};

}  // namespace tcpx
