// comm_link.h: what housekeeping holds of a comm that another thread may close at any moment.
//
// Purpose: the reactor, and whoever reads the health socket, reach comms through a link; closing cuts it, and from then
//          on the comm is never touched.
//
// Threads: With and Cut from any. A comm's own mutex is taken before its link's, never behind it; With's function must
//          not use another link.
#ifndef TCPX_NET_SOCKET_HEALTH_COMM_LINK_H_
#define TCPX_NET_SOCKET_HEALTH_COMM_LINK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "net_socket/engine/socket_swap.h"

namespace tcpx {

struct Seals;

struct ConnectionNumbers;

// Why a lane may change sockets although its own stands.
enum class LetGoWhy { kSilent, kReturns };

// What housekeeping tells a connection's end.
class Watched {
 public:
  virtual ~Watched() = default;

  // The peer's host, or the way to it, is gone.
  virtual void PeerDied(const absl::Status& status) = 0;
  // The peer's process ended without closing. What it sent may still be read.
  virtual void PeerEnded() = 0;
  // The peer's end of this connection has failed.
  virtual void PeerFailed(const std::string& cause) = 0;
  // The peer has given this connection up: what it fails with, if it is still needed.
  virtual void PeerParted(const std::string& cause) = 0;
  // Another connection of the same communicator has failed.
  virtual void ContextFailed(const std::string& cause) = 0;
  // A lane has ended without a word: the connection fails, where the reason is known or it is `late`. False: not yet.
  virtual bool MayFail(bool) { return true; }
  // A look at what stands still.
  virtual void CheckProgress(int64_t now_ns) = 0;
  // What the connection has moved, and waited for, so far: for the statistics, by their own thread.
  virtual void ReadNumbers(ConnectionNumbers*) {}

  // Of connections whose lanes heal; in the reactor, but for PeerLeft, which comes by whoever reads the health socket.
  // The peer's end is closed: what a lane has lost does not come back. `taken`: how much of each lane's stream it had
  // taken by then; empty: it does not say.
  virtual void PeerLeft(const std::vector<uint64_t>&) {}
  // A lane has lost its socket.
  virtual void LaneLost(int) {}
  // Another socket for a lane. kBusy: not now, and `offer` is as it was; kRefused: never.
  virtual Handover TakeSocket(int, SocketOffer*) { return Handover::kRefused; }
  // The lane goes on with it.
  virtual void LaneResumed(int, Seals*) {}
  // Sends again what the old socket of lane 0 may have lost, for a caller who has nothing to ask; false: no need.
  virtual bool SendsAgain() { return false; }
  // Looks for lanes that the network swallows, and has others tried beside them; false: never again.
  virtual bool LooksForSilence(int64_t) { return false; }
  // A socket beside such a lane, or by the lane's own path, has found the peer, and is to take its place: true, unless
  // a silent lane has moved. How much of the peer's records has come, modulo 2^32.
  virtual bool LetsGo(int, LetGoWhy, uint32_t*) { return false; }
  // The interface by which a lane goes is out: it is lost, unless it was before.
  virtual void LeavesPath(int, const absl::Status&) {}
  // True exactly when no lane has stood for too long.
  virtual bool LanesOverdue() { return false; }
  // The end that does not dial waits for lanes; false: no more.
  virtual bool AwaitsLanes() { return false; }
  // Lanes are to be opened, moved or closed.
  virtual void SteerLanes() {}
  // A lane that is to be closed, as soon as it is drained; false: that is done, or is of no use any more.
  virtual bool ClosesLane(int) { return false; }
  // It is closed, and has let go of its socket.
  virtual void LaneParked(int) {}
  // Its sender has closed the lane.
  virtual void LaneRested(int) {}
  // A lane that was to be opened gets no socket now.
  virtual void LaneRefused(int) {}
  // There is no other socket for a lane that was lost.
  virtual void LaneGone(const absl::Status&, int) {}

  // The receiver says that what it says on this lane is not acknowledged; by whoever reads the health socket.
  virtual void PeerIsUnheard(int) {}
  // The same, in the reactor: another socket is tried beside the lane.
  virtual void MovesUnheard(int) {}

  // What the peer waits for, or asks (wait_news.h); by whoever reads the health socket.
  virtual void PeerSaysWaits(const std::string&) {}
  // The same, in the reactor.
  virtual void HearWaits(const std::string&) {}

  // The same, of the health socket. It is lost, and there will be another one, or not.
  virtual void HealthLost() {}
  // It is back. `counts`: of all whom it serves this one counts it.
  virtual void HealthBack(bool) {}
  // True exactly when no lane has stood for so long; with `in_order`, and lane 0 has ended without a reset.
  virtual bool LanesGoneFor(int64_t, bool) { return false; }
  // True exactly when a lane has an open stream that is read out: no end of it is on its way unseen.
  virtual bool LaneStands() { return false; }
  // True exactly when the peer's kernel, at least, was heard on a lane within so long.
  virtual bool HeardWithin(int64_t) { return false; }
};

class CommLink {
 public:
  explicit CommLink(Watched* comm) : comm_(comm) {}

  template <typename Function>
  void With(Function function) {
    MutexLock lock(mutex_);
    if (comm_ != nullptr) function(comm_);
  }
  void Cut() {
    MutexLock lock(mutex_);
    comm_ = nullptr;
  }

 private:
  Mutex mutex_;
  Watched* comm_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_HEALTH_COMM_LINK_H_
