// frame.h: what a TUN device hands over at once: one packet, or up to 64 KiB of a TCP flow that still are to be cut
// into segments (GSO), and pieces of such a frame.
//
// Purpose: losses, reordering and queues count segments, as a network does, while the kernel's work is per frame: a
//          frame is cut only between segments that fare differently, and every run of equal ones travels on as one
//          frame. A piece has headers of its own and shares its frame's payload.
// Source:  the sums inside headers of the kernel's own frames are unfinished (kNeedsChecksum): the field
//          holds the pseudo header's sum; ours too, so no payload is ever read (virtio 1.2, 5.1.6.2).
// Threads: one. Lifetime: a piece keeps its frame's bytes; the pool outlives both.
// Units:   bytes. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/netns/wire/packet.h"

namespace tcpx {
namespace wire {

// An IP packet has 65535 bytes at most.
inline constexpr size_t kFrameBytesMax = 65536;

// struct virtio_net_hdr, in host byte order as TUN devices have it (linux/virtio_net.h itself is no C++).
struct Offload {
  uint8_t flags;
  uint8_t gso_type;
  uint16_t header_bytes;
  uint16_t gso_size;  // payload of a segment
  uint16_t checksum_start;
  uint16_t checksum_offset;
};
inline constexpr uint8_t kNeedsChecksum = 1;
inline constexpr uint8_t kNoGso = 0;
inline constexpr uint8_t kGsoTcpv4 = 1;
inline constexpr uint8_t kGsoTcpv6 = 4;
inline constexpr uint8_t kGsoEcn = 0x80;

using Bytes = std::shared_ptr<uint8_t>;

// Buffers that are used again: at 2 Gbit/s malloc and fresh pages would cost more than the copies.
class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  // kFrameBytesMax bytes.
  Bytes Large();
  // At least `bytes`, which are copied from `data`.
  Bytes Copy(const uint8_t* data, size_t bytes);

 private:
  static constexpr size_t kSmall = 2048;
  Bytes Take(size_t bytes, std::vector<std::unique_ptr<uint8_t[]>>* free);

  std::vector<std::unique_ptr<uint8_t[]>> free_large_;
  std::vector<std::unique_ptr<uint8_t[]>> free_small_;
};

struct Frame {
  Offload offload = {};
  Bytes data;
  size_t bytes = 0;
};

struct Piece {
  Offload offload = {};
  std::array<uint8_t, 128> header;  // the first header_bytes of it; none when the frame is passed on whole
  size_t header_bytes = 0;
  Bytes data;
  const uint8_t* payload = nullptr;  // within data
  size_t payload_bytes = 0;
  int segments = 1;
  uint64_t wire_bytes = 0;  // of all segments, each with its headers
};

// How many segments its last sender cuts the frame into; 1 unless it is a GSO frame of TCP.
int SegmentsOf(const Frame& frame, const PacketInfo& info);

// Segments [first, first + count) as a frame of their own; `count` is at least 1.
Piece CutPiece(const Frame& frame, const PacketInfo& info, int first, int count);

}  // namespace wire
}  // namespace tcpx
