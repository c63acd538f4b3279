// health_user.h: what a health socket tells the connections that share it, and asks them.
//
// Threads: the peer's words by the reader of the socket; the rest in the reactor. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tcpx {

class HealthUser {
 public:
  // The socket has ended for good. OK: the peer's process ended without closing, and what it sent may still be read.
  // Else its host, or the path to it, is gone.
  virtual void PeerLost(const absl::Status& how) = 0;
  // The peer's end of this connection has failed. `parting`: it has given the connection up, which is what this one
  // fails with if it is still needed.
  virtual void PeerFailed(const std::string& cause, bool parting) = 0;
  // The peer's end is closed: what a lane has lost does not come back. `taken`: how much of each lane's stream it had
  // taken by then; empty: it does not say.
  virtual void PeerLeft(const std::vector<uint64_t>& taken) = 0;
  // The receiver says that what it says on this lane is not acknowledged.
  virtual void PeerIsUnheard(int lane) = 0;
  // What the peer waits for, or asks (message/health_records.h).
  virtual void PeerSaysWaits(const std::string& news) = 0;

  // The socket is lost, and there will be another one, or not. True exactly when it is known who the peer is.
  virtual bool HealthLost() = 0;
  // It is back. `counts`: of all whom it serves this one counts it. True as above.
  virtual bool HealthBack(bool counts) = 0;
  // For how long no lane has been up; 0: one is, or the peer has closed. *in_order: lane 0 has ended without a reset.
  virtual int64_t LanesGoneNs(bool* in_order) = 0;
  // True exactly when a lane has an open stream; with `read_out`, and nothing unread, after which an end may come.
  virtual bool AnyLaneUp(bool read_out) = 0;
  // True exactly when the peer's kernel, at least, was heard on a lane within `ns`.
  virtual bool HeardWithin(int64_t ns) = 0;

 protected:
  ~HealthUser() = default;
};

}  // namespace tcpx
