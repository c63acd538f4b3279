// express_send_lane.h: lane 0 of a sending end: what the calling thread sends itself, in order.
//
// Purpose: messages up to the express size, and all messages where there is no other lane. A lone short one leaves at
//          once, in one buffer with its header; what is posted meanwhile is gathered, and leaves together.
// Budget:  no allocation; one system call for all that is gathered, and one more that asks what was acknowledged while
//          a request waits for that.
// Threads: one at a time, under the comm's mutex; counts from any. Lifetime: borrows requests until they are done.
// Units: bytes. Errors: to LaneOwner, or as said.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/message/request.h"
#include "net_socket/send/send_queue.h"
#include "net_socket/send/send_stream.h"

namespace tcpx {

class ExpressSendLane {
 public:
  struct Settings {
    int fd = -1;
    bool pads_lone_frames = true;  // PathProfile
    bool heals = false;            // the lane may get other sockets
    bool seals = false;            // nothing is sent in the clear (TCPX_ENCRYPT)
  };

  ExpressSendLane(LaneOwner* owner, const Settings& settings);

  // `lone`: no other request of the connection is unfinished.
  void Post(SendRequest* request, bool lone);
  // Sends what is queued, as far as the socket takes it.
  void Flush();
  // Sends again what the old socket may have lost, for a caller that has nothing to ask; *more: not all of it. A socket
  // that breaks is for others to report; not OK: nothing can be sealed.
  absl::Status SendAgainUnasked(bool* more);
  // Nothing is left that only copies here hold.
  bool MayClose();
  SendStream& stream() { return stream_; }
  const SendStream& stream() const { return stream_; }

 private:
  // Sends at once a short message that nothing else waits for, copied next to its header.
  void SendLone(SendRequest* request);
  // False: nothing new may be sent now.
  bool ReadyToFlush();
  // True when more may be sent at once.
  bool Took(ssize_t sent, size_t offered);

  LaneOwner* const owner_;
  const Settings settings_;
  SendStream stream_;
  SendQueue queue_;
};

}  // namespace tcpx
