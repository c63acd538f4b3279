// sealer.h: the sending half of a sealed socket: plaintext in, records out, and which plaintext the kernel has.
//
// Purpose: sits between those who gather what is to be sent and the socket. It takes plaintext as sendmsg(2) does: what
//          it says was taken is with the kernel, whole records of it; what it has sealed and the kernel has not taken
//          is pending, and goes first. Whoever sends offers the same bytes again until they are taken, so nobody has to
//          drive a socket for the sake of the sealer alone.
//
// Use:     Send(fd, ...), or, where an engine sends: if (!pending()) Seal(...); send rest(); Took(n).
//
// Threads: one at a time. Lifetime: borrows nothing; keys are wiped when it goes, and so with the socket that they
//          serve.
// Units:   bytes. Positions count from the socket's first record.
// Errors:  Send: as sendmsg(2), and EPROTO where sealing fails, which then stays. Stop.
#ifndef TCPX_NET_SOCKET_SEAL_SEALER_H_
#define TCPX_NET_SOCKET_SEAL_SEALER_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/seal/record.h"
#include "net_socket/seal/record_acks.h"
#include "net_socket/seal/seal_buffers.h"

namespace tcpx {

// What a connection fails with whose sealer is broken.
inline constexpr char kCantSeal[] = "the cipher failed, and nothing may be sent without it";

class Sealer {
 public:
  Sealer(const TrafficKeys& keys, std::shared_ptr<SealBuffers> buffers);
  ~Sealer();

  // Enough room for all records of so much plaintext, in a short piece and another one.
  static constexpr size_t RoomFor(size_t bytes) { return bytes + kSealBytes * (bytes / kSealedBytesMax + 3); }

  // Sends the pieces, as far as the socket takes them without waiting. Returns the plaintext bytes in the records that
  // were sent whole, which is never more than the pieces hold.
  ssize_t Send(int fd, const iovec* pieces, int count);
  // From here on Send takes nothing (EAGAIN): its caller would no longer offer the bytes first that are pending.
  void Stop() { stopped_ = true; }

  // Seals as much of the pieces, after the first `skip` bytes, as a buffer holds. Nothing may be pending. False: it
  // failed.
  bool Seal(const iovec* pieces, int count, size_t skip = 0);
  // The same, into `room`, which must stay valid until all was taken.
  bool SealInto(char* room, size_t bytes, const iovec* pieces, int count, size_t skip = 0);
  // Lends such room; RoomFor says how much plaintext fits.
  LentSealBuffer LendRoom() { return LentSealBuffer(buffers_); }
  // It seals nothing more.
  bool broken() const { return broken_; }
  bool pending() const { return begin_ < end_; }
  // What is to be sent next.
  iovec rest() const { return {place_ + begin_, end_ - begin_}; }
  // The kernel took so many bytes of it. Plaintext whose records are whole with it now.
  size_t Took(size_t bytes);
  // As RecordAcks: how much plaintext is not acknowledged, where the kernel holds `queued` bytes that are not.
  int64_t Unacked(int64_t queued) { return acks_.Unacked(queued); }
  int64_t UnackedAbout(int64_t queued) { return acks_.UnackedAbout(queued); }

 private:
  // A record's end.
  struct End {
    uint64_t sealed = 0;
    uint64_t plain = 0;
  };
  static constexpr size_t kEndsMax = 256;

  // Bytes of the first pieces that make the next record, from `skip` on.
  bool SealRecord(const iovec* pieces, int count, size_t skip, size_t bytes);
  void GiveBack();

  RecordKeys keys_;
  const std::shared_ptr<SealBuffers> buffers_;
  PageBuffer buffer_;      // null: none is borrowed
  char* place_ = nullptr;  // of what is pending: buffer_, or the caller's
  size_t room_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<End> ends_;  // of the pending records, in place_ and in plaintext sealed since it was begun
  size_t first_end_ = 0;
  size_t told_ = 0;  // of that plaintext
  bool broken_ = false;
  bool stopped_ = false;
  RecordAcks acks_;
};

// As sendmsg(2), by `sealer`; without one in the clear, and where that `must` not be (TCPX_ENCRYPT is on) not at all:
// EPROTO.
ssize_t SendBy(Sealer* sealer, bool must, int fd, iovec* pieces, int count);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEAL_SEALER_H_
