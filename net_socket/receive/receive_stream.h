// receive_stream.h: what every receiving lane has: its socket, what has come of its stream, and the frames in that.
//
// Purpose: a lane is a stream that outlives its sockets. Here is, once for all lanes, how a broken socket is judged and
//          how the lane goes on with another one. When it is read is the lane's own.
// Threads: one at a time; holds, ended, counts and LeaveAnswering from any.
// Lifetime: borrows the descriptor, whose number stays the lane's for life, the owner, the table and the pool.
// Units: bytes. Errors: to LaneOwner::FailLane, but for Replace's.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>

#include "absl/status/status.h"
#include "net_socket/engine/socket_swap.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/receive/receive_lane.h"
#include "net_socket/receive/stream_intake.h"

namespace tcpx {

class ReceiveStream {
 public:
  struct Settings {
    int fd = -1;
    int lane = 0;
    bool opened = false;        // later than its connection
    bool acks_at_once = false;  // acknowledgements are not put off because the socket has sent something
  };

  ReceiveStream(LaneOwner* owner, const Settings& settings, Destination* destination, StagePool* stages,
                ReceiveLane::Borrows borrows)
      : owner_(owner), settings_(settings), frames_(destination, stages, settings.lane, borrows) {}

  int lane() const { return settings_.lane; }
  ReceiveLane& frames() { return frames_; }
  StreamIntake& intake() { return intake_; }
  const StreamIntake& intake() const { return intake_; }
  // What comes next, without waiting: as StreamIntake::Receive.
  ssize_t Receive(iovec* iov, int places) { return intake_.Receive(settings_.fd, iov, places); }
  // Tells the owner what is wrong with what has come.
  void Check() {
    if (!frames_.status().ok()) owner_->FailLane(frames_.status(), lane());
  }

  // The socket has ended (0), or broken with an errno.
  void Broke(int err);
  // True: the lane can't go on now.
  bool Waits() { return lost_ && StillLost(); }
  // The lane waits for another socket.
  bool lost() const { return lost_; }
  // The same, and the last one has ended, not broken.
  bool lost_by_end() const { return lost_ && lost_by_ == 0; }
  // The lane goes on with another socket. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);
  // The lane is closed, and its socket is of no more use.
  bool drops_socket() const { return drops_socket_; }
  void DropSocket();
  // The socket has sent something.
  void LeaveAnswering();

  // Bytes lie here that nobody has passed on; not of a lane that a progress thread moves.
  bool holds() const { return frames_.holds() || intake_.holds(); }
  // The peer has ended the stream, and an error, if there was one, has been reported.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  const LaneCounts& counts() const { return frames_.counts(); }

 private:
  bool StillLost();
  // True exactly when the sender may have closed the lane, and not lost it.
  bool MayBeClosed() const;

  LaneOwner* const owner_;
  const Settings settings_;
  StreamIntake intake_;
  bool lost_ = false;
  int lost_by_ = 0;  // errno, 0: an end
  bool drops_socket_ = false;
  std::atomic<bool> ended_{false};
  ReceiveLane frames_;
};

}  // namespace tcpx
