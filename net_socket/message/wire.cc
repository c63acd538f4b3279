#include "net_socket/message/wire.h"

#include <cstring>

namespace tcpx {
namespace {

// "TCPX" and "XPCT", read as little-endian words.
constexpr uint32_t kHelloMagic = 0x58504354;
constexpr uint32_t kHandleMagic = 0x54435058;
constexpr uint32_t kAnswerMagic = 0x72504354;

template <typename T>
void Put(char* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

template <typename T>
T Get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

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
  const uint16_t nics = Get<uint16_t>(in + 48);
  auto address = SocketAddress::Decode(in + 56);
  if (!address.ok() || address->port() == 0 || address->IsAny() || nics < 1 || nics > kNicsMax) return;
  if (address->family() == handle->address.family()) return;
  handle->other_address = *address;
  handle->other_nics = nics;
}

}  // namespace

void EncodeHeader(const FrameHeader& header, char* out) {
  std::memset(out, 0, kHeaderBytes);
  Put<uint8_t>(out, static_cast<uint8_t>(header.kind));
  Put<uint16_t>(out + 2, header.padding);
  Put<uint32_t>(out + 4, header.length);
  Put<uint64_t>(out + 8, header.sequence);
  Put<uint64_t>(out + 16, header.offset);
  Put<uint64_t>(out + 24, header.message_bytes);
  Put<int32_t>(out + 32, header.tag);
}

const char* DecodeHeader(const char* in, FrameHeader* header) {
  const uint8_t kind = Get<uint8_t>(in);
  header->kind = static_cast<FrameKind>(kind);
  header->padding = Get<uint16_t>(in + 2);
  header->length = Get<uint32_t>(in + 4);
  header->sequence = Get<uint64_t>(in + 8);
  header->offset = Get<uint64_t>(in + 16);
  header->message_bytes = Get<uint64_t>(in + 24);
  header->tag = Get<int32_t>(in + 32);
  if (header->kind == FrameKind::kChunk) return CheckChunk(*header);
  if (kind < static_cast<uint8_t>(FrameKind::kFirstRecord)) return "unknown kind of frame";
  if (header->length > kRecordBytesMax) return "record longer than 64 KiB";
  return nullptr;
}

std::string EncodeRecord(FrameKind kind, absl::string_view body) {
  FrameHeader header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(body.size());
  std::string record(kHeaderBytes, '\0');
  EncodeHeader(header, &record[0]);
  record.append(body.data(), body.size());
  return record;
}

void EncodeEstablished(char* out) {
  FrameHeader header;
  header.kind = FrameKind::kEstablished;
  EncodeHeader(header, out);
}

bool IsEstablished(const char* in) {
  FrameHeader header;
  if (DecodeHeader(in, &header) != nullptr || header.kind != FrameKind::kEstablished) return false;
  return header.length == 0 && header.padding == 0;
}

std::string CauseText(absl::string_view body) {
  std::string text(body.substr(0, kCauseBytesMax));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

void EncodeHandle(const Handle& handle, char* out) {
  std::memset(out, 0, kHandleUsedBytes);
  Put<uint32_t>(out, kHandleMagic);
  Put<uint16_t>(out + 4, kWireVersion);
  Put<uint16_t>(out + 6, handle.nics);
  handle.address.Encode(out + 8);
  std::memcpy(out + 32, handle.ticket.data(), handle.ticket.size());
  if (!handle.other_address.valid()) return;
  Put<uint16_t>(out + 48, handle.other_nics);
  handle.other_address.Encode(out + 56);
}

const char* DecodeHandle(const char* in, Handle* handle) {
  if (Get<uint32_t>(in) != kHandleMagic) return "handle was not written by tcpx: every rank must load the same plugin";
  if (Get<uint16_t>(in + 4) != kWireVersion)
    return "handle is of another wire version of tcpx: install one build on all ranks";
  auto address = SocketAddress::Decode(in + 8);
  if (!address.ok() || address->port() == 0) return "handle holds no address";
  handle->address = *address;
  handle->nics = Get<uint16_t>(in + 6);
  if (handle->nics < 1 || handle->nics > kNicsMax) return "handle holds a senseless number of interfaces";
  std::memcpy(handle->ticket.data(), in + 32, handle->ticket.size());
  DecodeOtherAddress(in, handle);
  return nullptr;
}

void EncodeHello(const Hello& hello, char* out) {
  std::memset(out, 0, kHelloBytes);
  Put<uint32_t>(out, kHelloMagic);
  Put<uint16_t>(out + 4, hello.version);
  Put<uint16_t>(out + 6, hello.lane);
  Put<uint16_t>(out + 8, hello.lanes);
  Put<uint16_t>(out + 10, static_cast<uint16_t>(hello.kind));
  Put<int32_t>(out + 12, hello.traffic_class);
  std::memcpy(out + 16, hello.ticket.data(), hello.ticket.size());
  std::memcpy(out + 32, hello.connection_id.data(), hello.connection_id.size());
  Put<uint64_t>(out + 48, hello.features);
  Put<uint32_t>(out + 56, hello.express_bytes);
  Put<uint32_t>(out + 60, hello.attempt);
}

const char* DecodeHello(const char* in, Hello* hello) {
  if (Get<uint32_t>(in) != kHelloMagic) return "not a tcpx peer";
  hello->version = Get<uint16_t>(in + 4);
  hello->lane = Get<uint16_t>(in + 6);
  hello->lanes = Get<uint16_t>(in + 8);
  hello->kind = static_cast<HelloKind>(Get<uint16_t>(in + 10));
  hello->traffic_class = Get<int32_t>(in + 12);
  std::memcpy(hello->ticket.data(), in + 16, hello->ticket.size());
  std::memcpy(hello->connection_id.data(), in + 32, hello->connection_id.size());
  hello->features = Get<uint64_t>(in + 48);
  hello->express_bytes = Get<uint32_t>(in + 56);
  hello->attempt = Get<uint32_t>(in + 60);
  return nullptr;
}

uint64_t HealthTag(const std::array<uint8_t, 16>& connection_id) {
  return Get<uint64_t>(reinterpret_cast<const char*>(connection_id.data()));
}

size_t EncodeAnswer(const Answer& answer, char* out) {
  const size_t count = answer.nics.size();
  std::memset(out, 0, kAnswerFixedBytes + count * kPeerNicBytes);
  Put<uint32_t>(out, kAnswerMagic);
  Put<uint16_t>(out + 4, answer.version);
  Put<uint16_t>(out + 6, static_cast<uint16_t>(answer.status));
  Put<uint32_t>(out + 8, answer.max_receives);
  Put<uint32_t>(out + 12, static_cast<uint32_t>(count));
  Put<uint64_t>(out + 16, answer.features);
  Put<uint64_t>(out + 24, answer.taken);
  char* at = out + kAnswerFixedBytes;
  for (const PeerNic& nic : answer.nics) {
    nic.address.Encode(at);
    Put<uint32_t>(at + SocketAddress::kEncodedBytes, nic.speed_mbps);
    at += kPeerNicBytes;
  }
  return static_cast<size_t>(at - out);
}

const char* DecodeAnswer(const char* in, Answer* answer, int* nics) {
  if (Get<uint32_t>(in) != kAnswerMagic) return "not a tcpx peer";
  answer->version = Get<uint16_t>(in + 4);
  answer->status = static_cast<HelloStatus>(Get<uint16_t>(in + 6));
  answer->max_receives = Get<uint32_t>(in + 8);
  const uint32_t count = Get<uint32_t>(in + 12);
  answer->features = Get<uint64_t>(in + 16);
  answer->taken = Get<uint64_t>(in + 24);
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
    answer->nics.push_back({*address, Get<uint32_t>(in + SocketAddress::kEncodedBytes)});
  }
  return nullptr;
}

}  // namespace tcpx
