#include "tests/unit/bench/netns/wire/samples.h"

#include <algorithm>

#include "bench/netns/wire/checksum.h"

namespace tcpx {
namespace wire {
namespace {

constexpr size_t kTcpBytes = 32;

void FillIpv4(size_t bytes, uint8_t* ip) {
  ip[0] = 0x45;
  Write16(ip + 2, static_cast<uint16_t>(bytes));
  Write16(ip + 4, 0xfffe);
  ip[6] = 0x40;
  ip[8] = 64;
  ip[9] = 6;
  Write32(ip + 12, 0x0a000001);
  Write32(ip + 16, 0x0a000002);
  Write16(ip + 10, Checksum(ip, 20));
}

void FillIpv6(size_t bytes, uint8_t* ip) {
  ip[0] = 0x60;
  Write16(ip + 4, static_cast<uint16_t>(bytes - 40));
  ip[6] = 6;
  ip[7] = 64;
  ip[8] = ip[24] = 0xfd;
  ip[23] = 1;
  ip[39] = 2;
}

}  // namespace

Frame SampleFrame(bool ipv6, size_t payload_bytes, uint16_t port, BufferPool* pool) {
  const size_t ip_bytes = ipv6 ? 40 : 20;
  Frame frame;
  frame.bytes = ip_bytes + kTcpBytes + payload_bytes;
  frame.data = pool->Large();
  uint8_t* ip = frame.data.get();
  std::fill_n(ip, ip_bytes + kTcpBytes, 0);
  ipv6 ? FillIpv6(frame.bytes, ip) : FillIpv4(frame.bytes, ip);
  uint8_t* tcp = ip + ip_bytes;
  Write16(tcp, port);
  Write16(tcp + 2, 80);
  Write32(tcp + 4, kSampleSequence);
  tcp[12] = kTcpBytes / 4 << 4;
  tcp[13] = 0x80 | 0x10 | 0x08 | 0x01;
  std::fill_n(tcp + 20, 12, 1);
  for (size_t i = 0; i < payload_bytes; ++i) tcp[kTcpBytes + i] = static_cast<uint8_t>(i * 7);
  frame.offload.flags = kNeedsChecksum;
  frame.offload.checksum_start = static_cast<uint16_t>(ip_bytes);
  frame.offload.checksum_offset = 16;
  if (payload_bytes > kSampleSegment) {
    frame.offload.gso_type = ipv6 ? kGsoTcpv6 : kGsoTcpv4;
    frame.offload.gso_size = kSampleSegment;
  }
  return frame;
}

Bytes Written(const Piece& piece, size_t* bytes) {
  *bytes = piece.header_bytes + piece.payload_bytes;
  Bytes all(new uint8_t[*bytes], std::default_delete<uint8_t[]>());
  std::copy_n(piece.header.begin(), piece.header_bytes, all.get());
  std::copy_n(piece.payload, piece.payload_bytes, all.get() + piece.header_bytes);
  return all;
}

}  // namespace wire
}  // namespace tcpx
