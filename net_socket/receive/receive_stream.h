// receive_stream.h: what every receiving lane has: its socket, what has come of its stream, and the frames in that.
//
// Purpose: a lane is a stream that outlives its sockets. Here is, once for all lanes, how a broken socket is judged and
//          how the lane goes on with another one. When it is read is the lane's own.
// Threads: one at a time; holds, ended, counts and LeaveAnswering from any.
// Lifetime: borrows the descriptor, whose number stays the lane's for life, the owner, the table and the pool.
// Units: bytes. Errors: to LaneOwner::FailLane, but for Replace's. StreamIntake::Receive: as recvmsg(2), and EBADMSG
//          for what is not the peer's (seal/opener.h).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "net_socket/engine/socket_swap.h"
#include "net_socket/message/flight.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/receive/receive_lane.h"
#include "net_socket/seal/opener.h"

namespace tcpx {

// How much of a lane's stream has come, and what a socket that was let go had left: before a lane gets another socket,
// all that the old one holds is read out. The count that the peer gets includes it, and the lane reads it first. Where
// the socket is sealed, the stream is what was opened of its records, and a record that is not whole when its socket is
// let go was never there.
class StreamIntake {
 public:
  // Taken out of the stream so far, by whatever socket it came.
  uint64_t taken() const { return taken_; }
  // A read of the socket brought `bytes`.
  void Took(size_t bytes) { taken_ += bytes; }
  // From here on the socket's bytes are records; null: they are not. Once they were, those of every later socket are.
  void OpenBy(std::unique_ptr<Opener> opener) {
    opener_ = std::move(opener);
    sealed_ = sealed_ || opener_ != nullptr;
  }
  bool sealed() const { return sealed_; }
  // The socket is let go, all that it brought was read, and there is no next one yet: wipes its keys.
  void Forget();
  // A record has come in part.
  bool cut() const { return opener_ != nullptr && opener_->cut(); }
  // Something that can be read now lies here, and no longer in the kernel. From any thread; of Receive's readers only.
  bool holds() const { return holds_; }
  // Reads `fd` out to its end; nothing that comes on it counts from here on. It is to be replaced. False: what it had
  // is not the peer's.
  bool Freeze(int fd);
  // Copies into the places what has come and was not read: of an earlier socket, or of a sealed one. 0: nothing; below
  // 0: it is not the peer's.
  ssize_t ReadHeld(const iovec* iov, int count);
  // Reads what comes next, without waiting. From a sealed socket it reads at most as much as the places have room for,
  // plus a record: the rest stays in the kernel, which makes the sender wait.
  ssize_t Receive(int fd, iovec* iov, int count);

  // The following are for a sealed socket that an engine reads. Room: where to read to, once ReadHeld has nothing. It
  // has room for `plain` bytes of plaintext and a little more. 0: the read may wait for long; a lane that is idle then
  // holds no large buffer.
  iovec Room(size_t plain);
  // The lane is idle.
  void GiveBack() {
    if (opener_ != nullptr && opened_bytes_ == 0) opener_->GiveBack();
  }
  void TookSealed(size_t bytes) { opener_->Took(bytes); }

 private:
  void NoteHeld();
  // Copies what an earlier socket had left.
  size_t ReadLeft(const iovec* iov, int count);
  // Opens into the places what has come and is whole: 0 where nothing is, -1 where it is not the peer's.
  ssize_t Opened(const iovec* iov, int count);
  ssize_t ReceiveSealed(int fd, iovec* iov, int count);
  ssize_t OpenStraight(const iovec* iov, int count);
  ssize_t Counted(size_t bytes) {
    taken_ += bytes;
    return static_cast<ssize_t>(bytes);
  }
  // Copies from the record that was opened in place.
  size_t ReadOpened(const iovec* iov, int count);

  uint64_t taken_ = 0;
  bool sealed_ = false;
  std::unique_ptr<Opener> opener_;  // null: the socket is not sealed, or there is none
  const char* opened_ = nullptr;    // in it, counted, and not read by the lane
  size_t opened_bytes_ = 0;
  std::string left_;  // counted, and not read by the lane
  size_t read_ = 0;   // of it
  Relaxed<bool> holds_ = false;
};

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
