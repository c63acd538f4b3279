#include "net_socket/message/wire.h"

#include <cstring>

namespace tcpx {
namespace {

// "TCPX" and "XPCT", read as little-endian words.
constexpr uint32_t kHelloMagic = 0x58504354;
constexpr uint32_t kHandleMagic = 0x54435058;
constexpr uint32_t kAnswerMagic = 0x72504354;

const char* CheckChunk(const FrameHeader& header) {
  if (header.message_bytes > kMessageBytesMax) return "message larger than 1 TiB";
  if (header.length > kChunkBytesMax) return "chunk larger than 1 GiB";
  if (header.length > header.message_bytes) return "chunk larger than its message";
  if (header.offset > header.message_bytes - header.length) return "chunk past the end of its message";
  if (header.length == 0 && header.message_bytes != 0) return "empty chunk of a message that is not empty";
  return nullptr;
}

// What is senseless there is as good as nothing: the first address will do.
void DecodeOtherAddress(const char* in, Handle* handle) {
  handle->other_address = SocketAddress();
  handle->other_nics = 0;
  const uint16_t nics = GetNumber<uint16_t>(in + 48);
  auto address = SocketAddress::Decode(in + 56);
  if (!address.ok() || address->port() == 0 || address->IsAny() || nics < 1 || nics > kNicsMax) return;
  if (address->family() == handle->address.family()) return;
  handle->other_address = *address;
  handle->other_nics = nics;
}

}  // namespace

void EncodeHeader(const FrameHeader& header, char* out) {
  std::memset(out, 0, kHeaderBytes);
  PutFields(out, header.kind, uint8_t{0}, header.padding, header.length, header.sequence, header.offset,
            header.message_bytes, header.tag);
}

const char* DecodeHeader(const char* in, FrameHeader* header) {
  uint8_t unused;
  GetFields(in, &header->kind, &unused, &header->padding, &header->length, &header->sequence, &header->offset,
            &header->message_bytes, &header->tag);
  if (header->kind == FrameKind::kChunk) return CheckChunk(*header);
  if (header->kind < FrameKind::kFirstRecord) return "unknown kind of frame";
  if (header->length > kRecordBytesMax) return "record longer than 64 KiB";
  return nullptr;
}

std::string EncodeRecord(FrameKind kind, absl::string_view body) {
  std::string record(kHeaderBytes, '\0');
  EncodeHeader({kind, 0, static_cast<uint32_t>(body.size())}, &record[0]);
  record.append(body.data(), body.size());
  return record;
}

void EncodeEstablished(char* out) { EncodeHeader({FrameKind::kEstablished}, out); }

bool IsEstablished(const char* in) {
  FrameHeader header;
  if (DecodeHeader(in, &header) != nullptr || header.kind != FrameKind::kEstablished) return false;
  return header.length == 0 && header.padding == 0;
}

std::string CauseText(absl::string_view body) { return PlainText(body.substr(0, kCauseBytesMax)); }

void EncodeHandle(const Handle& handle, char* out) {
  std::memset(out, 0, kHandleUsedBytes);
  PutFields(out, kHandleMagic, kWireVersion, handle.nics);
  handle.address.Encode(out + 8);
  PutFields(out + 32, handle.ticket);
  if (!handle.other_address.valid()) return;
  PutFields(out + 48, handle.other_nics);
  handle.other_address.Encode(out + 56);
}

const char* DecodeHandle(const char* in, Handle* handle) {
  if (GetNumber<uint32_t>(in) != kHandleMagic)
    return "handle was not written by tcpx: every rank must load the same plugin";
  if (GetNumber<uint16_t>(in + 4) != kWireVersion)
    return "handle is of another wire version of tcpx: install one build on all ranks";
  auto address = SocketAddress::Decode(in + 8);
  if (!address.ok() || address->port() == 0) return "handle holds no address";
  handle->address = *address;
  handle->nics = GetNumber<uint16_t>(in + 6);
  if (handle->nics < 1 || handle->nics > kNicsMax) return "handle holds a senseless number of interfaces";
  GetFields(in + 32, &handle->ticket);
  DecodeOtherAddress(in, handle);
  return nullptr;
}

void EncodeHello(const Hello& hello, char* out) {
  PutFields(out, kHelloMagic, hello.version, hello.lane, hello.lanes, hello.kind, hello.traffic_class, hello.ticket,
            hello.connection_id, hello.features, hello.express_bytes, hello.attempt);
}

const char* DecodeHello(const char* in, Hello* hello) {
  if (GetNumber<uint32_t>(in) != kHelloMagic) return "not a tcpx peer";
  GetFields(in + sizeof(kHelloMagic), &hello->version, &hello->lane, &hello->lanes, &hello->kind, &hello->traffic_class,
            &hello->ticket, &hello->connection_id, &hello->features, &hello->express_bytes, &hello->attempt);
  return nullptr;
}

uint64_t HealthTag(const ConnectionId& connection_id) {
  return GetNumber<uint64_t>(reinterpret_cast<const char*>(connection_id.data()));
}

size_t EncodeAnswer(const Answer& answer, char* out) {
  const size_t count = answer.nics.size();
  std::memset(out, 0, kAnswerFixedBytes + count * kPeerNicBytes);
  PutFields(out, kAnswerMagic, answer.version, answer.status, answer.max_receives, static_cast<uint32_t>(count),
            answer.features, answer.taken);
  char* at = out + kAnswerFixedBytes;
  for (const PeerNic& nic : answer.nics) {
    nic.address.Encode(at);
    PutFields(at + SocketAddress::kEncodedBytes, nic.speed_mbps);
    at += kPeerNicBytes;
  }
  return static_cast<size_t>(at - out);
}

const char* DecodeAnswer(const char* in, Answer* answer, int* nics) {
  if (GetNumber<uint32_t>(in) != kAnswerMagic) return "not a tcpx peer";
  uint32_t count;
  GetFields(in + sizeof(kAnswerMagic), &answer->version, &answer->status, &answer->max_receives, &count,
            &answer->features, &answer->taken);
  if (answer->max_receives == 0 || answer->max_receives > kReceivesMax) return "of receives in groups of a wrong size";
  if (count > kNicsMax) return "more interfaces than a device can have";
  *nics = static_cast<int>(count);
  return nullptr;
}

const char* DecodeAnswerNics(const char* in, int count, Answer* answer) {
  answer->nics.clear();
  for (int i = 0; i < count; ++i, in += kPeerNicBytes) {
    auto address = SocketAddress::Decode(in);
    if (!address.ok() || address->port() == 0) return "an interface without an address";
    answer->nics.push_back({*address, GetNumber<uint32_t>(in + SocketAddress::kEncodedBytes)});
  }
  return nullptr;
}

}  // namespace tcpx
