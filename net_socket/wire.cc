#include "net_socket/wire.h"

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
  handle.address.Encode(out + 8);
  std::memcpy(out + 32, handle.ticket.data(), handle.ticket.size());
}

const char* DecodeHandle(const char* in, Handle* handle) {
  if (Get<uint32_t>(in) != kHandleMagic) return "handle was not written by tcpx: every rank must load the same plugin";
  if (Get<uint16_t>(in + 4) != kWireVersion)
    return "handle is of another wire version of tcpx: install one build on all ranks";
  auto address = SocketAddress::Decode(in + 8);
  if (!address.ok() || address->port() == 0) return "handle holds no address";
  handle->address = *address;
  std::memcpy(handle->ticket.data(), in + 32, handle->ticket.size());
  return nullptr;
}

void EncodeHello(const Hello& hello, char* out) {
  std::memset(out, 0, kHelloBytes);
  Put<uint32_t>(out, kHelloMagic);
  Put<uint16_t>(out + 4, hello.version);
  Put<uint16_t>(out + 6, hello.lane);
  Put<uint16_t>(out + 8, hello.lanes);
  Put<int32_t>(out + 12, hello.traffic_class);
  std::memcpy(out + 16, hello.ticket.data(), hello.ticket.size());
  std::memcpy(out + 32, hello.connection_id.data(), hello.connection_id.size());
  Put<uint64_t>(out + 48, hello.features);
  Put<uint32_t>(out + 56, hello.express_bytes);
}

const char* DecodeHello(const char* in, Hello* hello) {
  if (Get<uint32_t>(in) != kHelloMagic) return "not a tcpx peer";
  hello->version = Get<uint16_t>(in + 4);
  hello->lane = Get<uint16_t>(in + 6);
  hello->lanes = Get<uint16_t>(in + 8);
  hello->traffic_class = Get<int32_t>(in + 12);
  std::memcpy(hello->ticket.data(), in + 16, hello->ticket.size());
  std::memcpy(hello->connection_id.data(), in + 32, hello->connection_id.size());
  hello->features = Get<uint64_t>(in + 48);
  hello->express_bytes = Get<uint32_t>(in + 56);
  return nullptr;
}

const char* HelloStatusText(HelloStatus status) {
  switch (status) {
    case HelloStatus::kAccepted:
      return "accepted";
    case HelloStatus::kWrongVersion:
      return "the peer speaks another wire version: install one build of tcpx on all ranks";
    case HelloStatus::kUnknownTicket:
      return "nobody listens with this handle any more";
    case HelloStatus::kBadLane:
      return "the peer refused the lane index";
    case HelloStatus::kDuplicateLane:
      return "the peer has this lane already";
    case HelloStatus::kBusy:
      return "the peer is out of descriptors or memory: raise its `ulimit -n`";
  }
  return "the peer refused for a reason this build does not know";
}

size_t EncodeAnswer(const Answer& answer, char* out) {
  const size_t count = answer.addresses.size();
  std::memset(out, 0, kAnswerFixedBytes);
  Put<uint32_t>(out, kAnswerMagic);
  Put<uint16_t>(out + 4, answer.version);
  Put<uint16_t>(out + 6, static_cast<uint16_t>(answer.status));
  Put<uint32_t>(out + 8, answer.max_receives);
  Put<uint32_t>(out + 12, static_cast<uint32_t>(count));
  Put<uint64_t>(out + 16, answer.features);
  for (size_t i = 0; i < count; ++i) {
    answer.addresses[i].Encode(out + kAnswerFixedBytes + i * SocketAddress::kEncodedBytes);
  }
  return kAnswerFixedBytes + count * SocketAddress::kEncodedBytes;
}

const char* DecodeAnswer(const char* in, Answer* answer, int* addresses) {
  if (Get<uint32_t>(in) != kAnswerMagic) return "not a tcpx peer";
  answer->version = Get<uint16_t>(in + 4);
  answer->status = static_cast<HelloStatus>(Get<uint16_t>(in + 6));
  answer->max_receives = Get<uint32_t>(in + 8);
  const uint32_t count = Get<uint32_t>(in + 12);
  answer->features = Get<uint64_t>(in + 16);
  if (answer->max_receives == 0 || answer->max_receives > kReceivesMax) return "of receives in groups of a wrong size";
  if (count > kAddressesMax) return "more addresses than a device can have";
  *addresses = static_cast<int>(count);
  return nullptr;
}

void DecodeAnswerAddresses(const char* in, int count, Answer* answer) {
  for (int i = 0; i < count; ++i) {
    auto address = SocketAddress::Decode(in + i * SocketAddress::kEncodedBytes);
    if (address.ok()) answer->addresses.push_back(*address);
  }
}

}  // namespace tcpx
