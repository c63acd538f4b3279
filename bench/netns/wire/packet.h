// packet.h: where the parts of an IP packet lie, and which flow it belongs to.
//
// Threads: any; pure.
// Units:   bytes; ports in host byte order.
// Errors:  ParsePacket: nothing, for what is neither IPv4 nor IPv6 or is cut short.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tcpx {
namespace wire {

// An IPv4 address fills the first four bytes; the rest is zero.
using Address = std::array<uint8_t, 16>;

// One direction of a connection.
struct FlowKey {
  Address source = {};
  Address destination = {};
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint8_t protocol = 0;

  bool operator==(const FlowKey& other) const;
};

// The same for the same flow and seed in every run, as a switch's hash is. Every bit depends on every byte of the key.
uint64_t FlowHash(const FlowKey& key, uint64_t seed);

struct PacketInfo {
  FlowKey flow;
  bool ipv6 = false;
  size_t ip_bytes = 0;      // header with options
  size_t header_bytes = 0;  // ip_bytes and TCP's header; 0: not TCP, or TCP after other headers: never cut in pieces
};

// Fragments and protocols other than TCP and UDP have ports 0.
std::optional<PacketInfo> ParsePacket(const uint8_t* data, size_t bytes);

}  // namespace wire
}  // namespace tcpx
