#include "bench/netns/wire/frame.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "bench/netns/wire/checksum.h"

namespace tcpx {
namespace wire {
namespace {

constexpr uint8_t kFinPush = 0x01 | 0x08;
constexpr uint8_t kCongestionWindowReduced = 0x80;
constexpr size_t kTcpChecksumAt = 16;

// Each segment has the next identification (RFC 6864 asks nothing of packets with DF; older receivers compare).
void RewriteIp(const PacketInfo& info, int first, size_t bytes, uint8_t* header) {
  if (info.ipv6) {
    Write16(header + 4, static_cast<uint16_t>(bytes - info.ip_bytes));
    return;
  }
  Write16(header + 2, static_cast<uint16_t>(bytes));
  Write16(header + 4, static_cast<uint16_t>(Read16(header + 4) + first));
  Write16(header + 10, 0);
  Write16(header + 10, Checksum(header, info.ip_bytes));
}

void RewriteTcp(const PacketInfo& info, uint32_t skipped, bool is_last, size_t bytes, uint8_t* header) {
  uint8_t* tcp = header + info.ip_bytes;
  Write32(tcp + 4, Read32(tcp + 4) + skipped);
  if (!is_last) tcp[13] &= static_cast<uint8_t>(~kFinPush);
  if (skipped > 0) tcp[13] &= static_cast<uint8_t>(~kCongestionWindowReduced);
  const size_t address_bytes = info.ipv6 ? 16 : 4;
  const uint8_t* addresses = header + (info.ipv6 ? 8 : 12);
  const auto transport_bytes = static_cast<uint32_t>(bytes - info.ip_bytes);
  Write16(tcp + kTcpChecksumAt, Fold(PseudoHeader(addresses, address_bytes, IPPROTO_TCP, transport_bytes)));
}

Piece Whole(const Frame& frame, int segments, size_t header_bytes) {
  Piece piece;
  piece.offload = frame.offload;
  piece.data = frame.data;
  piece.payload = frame.data.get();
  piece.payload_bytes = frame.bytes;
  piece.segments = segments;
  piece.wire_bytes = frame.bytes + static_cast<uint64_t>(segments - 1) * header_bytes;
  return piece;
}

}  // namespace

Bytes BufferPool::Take(size_t bytes, std::vector<std::unique_ptr<uint8_t[]>>* free) {
  if (free->empty()) free->push_back(std::unique_ptr<uint8_t[]>(new uint8_t[bytes]));
  uint8_t* taken = free->back().release();
  free->pop_back();
  return Bytes(taken, [free](uint8_t* back) { free->emplace_back(back); });
}

Bytes BufferPool::Large() { return Take(kFrameBytesMax, &free_large_); }

Bytes BufferPool::Copy(const uint8_t* data, size_t bytes) {
  Bytes copy = bytes <= kSmall ? Take(kSmall, &free_small_) : Large();
  std::copy_n(data, bytes, copy.get());
  return copy;
}

int SegmentsOf(const Frame& frame, const PacketInfo& info) {
  const uint8_t type = frame.offload.gso_type & static_cast<uint8_t>(~kGsoEcn);
  const bool of_tcp = type == kGsoTcpv4 || type == kGsoTcpv6;
  if (!of_tcp || frame.offload.gso_size == 0 || info.header_bytes == 0) return 1;
  const size_t payload = frame.bytes - info.header_bytes;
  return std::max<int>(1, static_cast<int>((payload + frame.offload.gso_size - 1) / frame.offload.gso_size));
}

Piece CutPiece(const Frame& frame, const PacketInfo& info, int first, int count) {
  const int segments = SegmentsOf(frame, info);
  if (count == segments) return Whole(frame, segments, info.header_bytes);
  const size_t each = frame.offload.gso_size;
  const size_t skipped = static_cast<size_t>(first) * each;
  const size_t payload = frame.bytes - info.header_bytes;
  Piece piece;
  piece.header_bytes = info.header_bytes;
  piece.data = frame.data;
  piece.payload = frame.data.get() + info.header_bytes + skipped;
  piece.payload_bytes = std::min(static_cast<size_t>(count) * each, payload - skipped);
  piece.segments = count;
  piece.wire_bytes = piece.payload_bytes + static_cast<uint64_t>(count) * info.header_bytes;
  std::memcpy(piece.header.data(), frame.data.get(), info.header_bytes);
  const size_t bytes = info.header_bytes + piece.payload_bytes;
  RewriteIp(info, first, bytes, piece.header.data());
  RewriteTcp(info, static_cast<uint32_t>(skipped), first + count == segments, bytes, piece.header.data());
  piece.offload = frame.offload;
  piece.offload.flags = kNeedsChecksum;
  piece.offload.checksum_start = static_cast<uint16_t>(info.ip_bytes);
  piece.offload.checksum_offset = kTcpChecksumAt;
  if (count > 1) return piece;
  piece.offload.gso_type = kNoGso;
  piece.offload.gso_size = 0;
  return piece;
}

}  // namespace wire
}  // namespace tcpx
