// send_stream.h: the stream of bytes that a sending lane is, and the socket that carries it at the moment.
//
// Purpose: what every sending lane has: its socket, what seals it, the frames that it holds until they are
//          acknowledged, its counts, and what happens when the socket breaks or another one takes its place. Which
//          bytes are sent, and when, is the lane's: express_send_lane.h, bulk_send_lane.h.
// Threads: those of the lane, one at a time; counts from any.
// Lifetime: owned by its lane. Borrows the owner; the descriptor is the connection's. Units: bytes, nanoseconds.
// Errors:  to LaneOwner, by Broke and CanSeal; else returned.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "net_socket/engine/socket_swap.h"
#include "net_socket/message/counts.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/seal/seals.h"
#include "net_socket/send/held_frames.h"

namespace tcpx {

class SendStream {
 public:
  struct Settings {
    int fd = -1;
    int lane = 0;
    size_t held_frames = 0;  // HeldFrames; 0: the lane does not heal
    size_t copy_bytes = 0;   // the same
    bool seals = false;      // nothing is sent in the clear (TCPX_ENCRYPT)
  };

  SendStream(LaneOwner* owner, const Settings& settings) : owner_(owner), settings_(settings) {
    if (settings.held_frames > 0) held_ = std::make_unique<HeldFrames>(settings.held_frames, settings.copy_bytes);
  }

  // Before anything is sent: the socket is sealed.
  void SealBy(std::unique_ptr<Sealer> sealer) { sealer_ = std::move(sealer); }

  int fd() const { return settings_.fd; }
  int lane() const { return settings_.lane; }
  bool seals() const { return settings_.seals; }
  // It is lost, or closed, and keeps still until it gets another socket.
  bool lost() const { return lost_; }
  // Null: the lane does not heal.
  HeldFrames* held() const { return held_.get(); }
  // Null: the socket is not sealed.
  Sealer* sealer() const { return sealer_.get(); }
  LaneCounts& counts() { return counts_; }
  const LaneCounts& counts() const { return counts_; }

  // As sendmsg(2), and EPROTO where it can't be sealed.
  ssize_t Send(iovec* pieces, int count) { return SendBy(sealer_.get(), settings_.seals, settings_.fd, pieces, count); }
  // A call that was offered `offered` bytes of the stream took `bytes`.
  void Count(size_t bytes, size_t offered) {
    counts_.bytes.Add(bytes);
    counts_.calls.Add();
    if (bytes < offered) counts_.short_calls.Add();
  }
  // A send ended with this errno: the lane gets another socket, or its connection fails. Nothing where it is transient.
  void Broke(int err);
  // False: nothing can be sealed, and the connection has failed.
  bool CanSeal();

  // For lanes that heal. Tells the requests what was acknowledged.
  void LookForAcks();
  // The same, as often as it pays: returns when to look again, 0 for not at all.
  int64_t LookForAcks(int64_t now_ns);
  // The socket has died, though nobody may have noticed yet.
  bool Died() const;
  // Sends what an earlier socket may have lost, as far as this one takes it without waiting: 0 once nothing of it is
  // left, else an errno, as SendBy's (seal/sealer.h).
  int SendAgain();
  // The peer has closed, and had taken `taken` bytes of the stream (HeldFrames::PeerTook).
  void PeerTook(uint64_t taken);
  // Goes on with another socket, or is closed. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);

 private:
  LaneOwner* const owner_;
  const Settings settings_;
  std::unique_ptr<HeldFrames> held_;
  std::unique_ptr<Sealer> sealer_;
  bool lost_ = false;
  int64_t ack_wait_ns_ = 0;  // from one look for acknowledgements to the next
  uint64_t acked_ = 0;       // at the latest
  LaneCounts counts_;
};

}  // namespace tcpx
