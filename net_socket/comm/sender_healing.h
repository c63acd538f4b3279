// sender_healing.h: what a sending end does with lanes that are lost or suspected (docs/healing.md).
//
// Purpose: the sender dials. A lane that was lost is dialled until it is back; one that may be swallowed by the network,
//          or that the peer says it can't be heard on, has another socket tried in addition to its own, and lets its own
//          go only once that has found the peer.
//
// Threads: the reactor; the connection's link is held. PeerIsUnheard by whoever reads the health socket.
// Lifetime: owned by its sending end.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  to the connection's failure, or to PeerLoss where nothing is under way.
#ifndef TCPX_NET_SOCKET_COMM_SENDER_HEALING_H_
#define TCPX_NET_SOCKET_COMM_SENDER_HEALING_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "net_socket/comm/sender_parts.h"

namespace tcpx {

class SenderHealing {
 public:
  explicit SenderHealing(SenderParts parts) : parts_(std::move(parts)) {}

  void LaneLostInLoop(int lane);
  // There is no other socket for a lane that was lost.
  void LaneGoneInLoop(const absl::Status& status, int lane);
  // True exactly when no lane has been up for too long.
  bool LanesOverdueInLoop() const;
  // Looks for lanes that the network swallows; false: never again.
  bool LooksForSilenceInLoop(int64_t now_ns);
  // The receiver says that what it says on this lane is not acknowledged.
  void PeerIsUnheard(int lane);
  void MovesUnheardInLoop(int lane);
  // Another socket has found the peer, and is to take the lane's place: true, unless a silent lane has moved on.
  bool LetsGoInLoop(int lane, LetGoWhy why, uint32_t* records_taken);
  // The interface by which the lane goes is out.
  void LeavesPathInLoop(int lane, const absl::Status& why);

 private:
  bool LetsSilentGo(int lane);

  const SenderParts parts_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_SENDER_HEALING_H_
