#include "bench/net_bench/ring_order.h"

#include <algorithm>

namespace tcpx {
namespace bench {

RingOrder::RingOrder(const Shape& shape) : shape_(shape) {
  const size_t ranks = static_cast<size_t>(shape.ranks);
  const size_t largest_chunk = (shape.elements + ranks - 1) / ranks;
  slices_ = std::max<uint64_t>(1, (largest_chunk + shape.slice_elements - 1) / shape.slice_elements);
}

RingPiece RingOrder::Sent(uint64_t message) const { return Piece(SentChunk(message / slices_), message % slices_); }

// What the rank before sends: its chunk of the step, which is the one before ours.
RingPiece RingOrder::Received(uint64_t message) const {
  const int chunk = (SentChunk(message / slices_) + shape_.ranks - 1) % shape_.ranks;
  return Piece(chunk, message % slices_);
}

uint64_t RingOrder::SendLimit(uint64_t received) const { return std::min(messages(), received + slices_); }

uint64_t RingOrder::ReceiveLimit(uint64_t sends_done) const {
  return std::min(messages(), ReducingMessages() + sends_done);
}

// Both halves are one walk: after the reducing steps the chunk that is complete here is the next to go out.
int RingOrder::SentChunk(uint64_t step) const {
  const int ranks = shape_.ranks;
  return (shape_.rank + 2 * ranks - static_cast<int>(step % static_cast<uint64_t>(2 * ranks))) % ranks;
}

RingPiece RingOrder::Piece(int chunk, uint64_t slice) const {
  const size_t end = ChunkBegin(chunk + 1);
  RingPiece piece;
  piece.begin = std::min(end, ChunkBegin(chunk) + slice * shape_.slice_elements);
  piece.count = std::min(shape_.slice_elements, end - piece.begin);
  return piece;
}

size_t RingOrder::ChunkBegin(int chunk) const {
  // The product does not overflow: elements are below 2^30, ranks below 2^7.
  return shape_.elements * static_cast<size_t>(chunk) / static_cast<size_t>(shape_.ranks);
}

}  // namespace bench
}  // namespace tcpx
