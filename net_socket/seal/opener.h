// opener.h: the receiving half of a sealed socket: records in, authentic plaintext out, in order.
//
// Purpose: holds what has been read of the socket until a record is whole, and opens it where its reader wants it.
//          Knows no socket.
// Use:     read into Room(), Took(n); while (size_t n = opener.next()) { Open(place) or OpenInPlace() }
// Threads: one at a time. Lifetime: keys are wiped when it goes.
// Units:   bytes.
// Errors:  broken(), for good: a length that no record has, or a record that is not the next one of this direction of
//          this socket, unchanged. Nothing is given out after it.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "net_socket/seal/record.h"

namespace tcpx {

// What a connection fails with that got such bytes.
inline constexpr char kNotAuthentic[] =
    "bytes came that are not the peer's: a record was changed, repeated, left out or moved on the path (TCPX_ENCRYPT)";
inline constexpr char kCutRecord[] =
    "the stream ended in the middle of a record: the peer is gone, or it was cut on the path (TCPX_ENCRYPT)";

class Opener {
 public:
  Opener(const TrafficKeys& keys, std::shared_ptr<SealBuffers> buffers) : keys_(keys), buffers_(std::move(buffers)) {}

  // Where to read to; it overwrites what was opened in place before. `idle`: the read may wait for long, so that the
  // room is small, and not from the shared buffers, unless something is held already.
  iovec Room(bool idle = false);
  void Took(size_t bytes) { end_ += bytes; }
  // How much plaintext the next record has; 0: it is not complete, or this is broken.
  size_t next();
  // Opens the next record into `out`. False: broken, and the contents of `out` mean nothing.
  bool Open(char* out);
  // Opens it in place; it is valid until the next Room or Rest. Null: broken.
  const char* OpenInPlace();
  // How much of the current record is still to come, as far as its length is known.
  size_t missing() const { return std::max(needed(), end_ - begin_) - (end_ - begin_); }
  bool broken() const { return broken_; }
  // A part of a record is held.
  bool cut() const { return begin_ < end_; }
  // Nothing more is read for now: gives a buffer back that holds little.
  void GiveBack();
  // Opens all whole records that `sealed` brings, and appends their plaintext. False: broken, after what was appended.
  bool OpenAll(const char* sealed, size_t bytes, std::string* out);

 private:
  static constexpr size_t kOwnBytes = 512;

  // Bytes of the current record, as far as its length is known.
  size_t needed() const;

  RecordKeys keys_;
  const std::shared_ptr<SealBuffers> buffers_;
  PageBuffer buffer_;  // null: none is borrowed
  char* place_ = own_;
  size_t capacity_ = kOwnBytes;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool broken_ = false;
  char own_[kOwnBytes];
};

}  // namespace tcpx
