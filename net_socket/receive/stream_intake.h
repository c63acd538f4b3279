// stream_intake.h: how much of a lane's stream has come, and what a socket that was let go had left.
//
// Purpose: a lane is a stream of bytes, which outlives its sockets. Before a lane gets another socket, all that the old
//          one holds is read out: the count that the peer gets includes it, and the lane reads it first. Where the
//          socket is sealed, the stream is what was opened of its records, and a record that is not whole when its
//          socket is let go was never there.
// Threads: one at a time. Units: bytes.
// Errors:  Receive: as recvmsg(2), and EBADMSG for what is not the peer's (seal/opener.h).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net_socket/message/flight.h"
#include "net_socket/seal/opener.h"

namespace tcpx {

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

}  // namespace tcpx
