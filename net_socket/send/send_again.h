// send_again.h: what a lane that heals does with its socket apart from sending what is new.
//
// Threads: the lane's.
// Units:   nanoseconds.
// Errors:  SendAgain: as SendBy (seal/sealer.h).
#ifndef TCPX_NET_SOCKET_SEND_SEND_AGAIN_H_
#define TCPX_NET_SOCKET_SEND_SEND_AGAIN_H_

#include <cstdint>

#include "common/clock.h"

namespace tcpx {

class HeldFrames;
class Sealer;

// `sealer`: of the lane's socket; null: it is not sealed. Sends what an earlier socket may have lost, as far as this
// one takes it without waiting: 0 once nothing is left. `must`: not in the clear.
int SendAgain(int fd, HeldFrames* held, Sealer* sealer, bool must);
// The peer has closed, with so much of the lane's stream (HeldFrames::PeerTook).
void PeerTookOf(uint64_t taken, HeldFrames* held, Sealer* sealer);
// How much of the lane's stream the socket holds without an acknowledgement (QueuedBytes); negative: not known.
int64_t QueuedOf(int fd, Sealer* sealer);

// Looks at what was acknowledged while requests wait for it: often at first, and less often where nothing is.
class AckLooks {
 public:
  // Tells the requests. Returns when to look again, 0 for not at all.
  int64_t Look(int fd, HeldFrames* held, int64_t now, Sealer* sealer = nullptr);

 private:
  int64_t wait_ns_ = 0;  // from one look to the next
  uint64_t acked_ = 0;   // at the latest
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_SEND_AGAIN_H_
