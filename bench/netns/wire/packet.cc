#include "bench/netns/wire/packet.h"

#include <netinet/in.h>

#include <algorithm>

#include "bench/netns/wire/checksum.h"

namespace tcpx {
namespace wire {
namespace {

constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
constexpr size_t kTcpBytes = 20;
constexpr uint16_t kFragment = 0x3fff;  // more fragments, or an offset

// FNV-1a, byte by byte (Fowler, Noll, Vo).
uint64_t Mix(uint64_t hash, const uint8_t* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001b3;
  return hash;
}

// FNV's low bits know little of the last bytes: murmur3's finish mixes them.
uint64_t Finish(uint64_t hash) {
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
  return hash ^ hash >> 33;
}

void ParseTransport(const uint8_t* data, size_t bytes, PacketInfo* info) {
  const uint8_t protocol = info->flow.protocol;
  const uint8_t* transport = data + info->ip_bytes;
  if ((protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) || bytes < info->ip_bytes + 8) return;
  info->flow.source_port = Read16(transport);
  info->flow.destination_port = Read16(transport + 2);
  if (protocol != IPPROTO_TCP || bytes < info->ip_bytes + kTcpBytes) return;
  const size_t header_bytes = info->ip_bytes + 4 * static_cast<size_t>(transport[12] >> 4);
  if (header_bytes >= info->ip_bytes + kTcpBytes && header_bytes <= bytes) info->header_bytes = header_bytes;
}

std::optional<PacketInfo> ParseIpv4(const uint8_t* data, size_t bytes) {
  PacketInfo info;
  info.ip_bytes = 4 * static_cast<size_t>(data[0] & 15);
  if (bytes < kIpv4Bytes || info.ip_bytes < kIpv4Bytes || bytes < info.ip_bytes) return std::nullopt;
  info.flow.protocol = data[9];
  std::copy_n(data + 12, 4, info.flow.source.begin());
  std::copy_n(data + 16, 4, info.flow.destination.begin());
  if ((Read16(data + 6) & kFragment) == 0) ParseTransport(data, bytes, &info);
  return info;
}

std::optional<PacketInfo> ParseIpv6(const uint8_t* data, size_t bytes) {
  if (bytes < kIpv6Bytes) return std::nullopt;
  PacketInfo info;
  info.ipv6 = true;
  info.ip_bytes = kIpv6Bytes;
  info.flow.protocol = data[6];
  std::copy_n(data + 8, 16, info.flow.source.begin());
  std::copy_n(data + 24, 16, info.flow.destination.begin());
  ParseTransport(data, bytes, &info);
  return info;
}

}  // namespace

bool FlowKey::operator==(const FlowKey& other) const {
  return source_port == other.source_port && destination_port == other.destination_port && protocol == other.protocol &&
         source == other.source && destination == other.destination;
}

uint64_t FlowHash(const FlowKey& key, uint64_t seed) {
  uint8_t rest[5] = {};
  Write16(rest, key.source_port);
  Write16(rest + 2, key.destination_port);
  rest[4] = key.protocol;
  uint64_t hash = 0xcbf29ce484222325 ^ Finish(seed);
  hash = Mix(hash, key.source.data(), key.source.size());
  hash = Mix(hash, key.destination.data(), key.destination.size());
  return Finish(Mix(hash, rest, sizeof rest));
}

std::optional<PacketInfo> ParsePacket(const uint8_t* data, size_t bytes) {
  if (bytes == 0) return std::nullopt;
  if (data[0] >> 4 == 4) return ParseIpv4(data, bytes);
  if (data[0] >> 4 == 6) return ParseIpv6(data, bytes);
  return std::nullopt;
}

}  // namespace wire
}  // namespace tcpx
