// ring_order.h: who sends which part when, in a ring all-reduce.
//
// Purpose: each rank sends to the next and receives from the one before. The data is cut into one chunk per rank and
//          each chunk into slices, a message each. R - 1 steps reduce and scatter, R - 1 more gather. Message m of a
//          rank is slice m % slices() of the chunk of step m / slices(). It may be sent once message m - slices() has
//          been received, which is what makes a pipeline of the slices.
// Threads: any; pure.
// Units:   elements. Errors: none.
// Source:  Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {
namespace bench {

struct RingPiece {
  size_t begin = 0;
  size_t count = 0;  // 0 where the chunks do not come out even
};

class RingOrder {
 public:
  struct Shape {
    int rank = 0;
    int ranks = 2;
    size_t elements = 0;
    size_t slice_elements = 1;  // most of one message
  };
  explicit RingOrder(const Shape& shape);

  // Messages per direction.
  uint64_t messages() const { return 2 * static_cast<uint64_t>(shape_.ranks - 1) * slices_; }
  uint64_t slices() const { return slices_; }

  RingPiece Sent(uint64_t message) const;
  RingPiece Received(uint64_t message) const;
  // True exactly when a received message is added to what is there, false when it replaces it.
  bool Reduces(uint64_t message) const { return message < ReducingMessages(); }

  // How many messages may be sent when so many were received and taken in.
  uint64_t SendLimit(uint64_t received) const;
  // How many may be taken in when so many sends are done: a gathered piece must not overwrite one that is still on its
  // way out.
  uint64_t ReceiveLimit(uint64_t sends_done) const;

 private:
  uint64_t ReducingMessages() const { return static_cast<uint64_t>(shape_.ranks - 1) * slices_; }
  RingPiece Piece(int chunk, uint64_t slice) const;
  // The chunk that leaves this rank in `step`.
  int SentChunk(uint64_t step) const;
  size_t ChunkBegin(int chunk) const;

  const Shape shape_;
  uint64_t slices_;
};

}  // namespace bench
}  // namespace tcpx
