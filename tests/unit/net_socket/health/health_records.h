// health_records.h: what is said on a health socket, byte by byte.
//
// Threads: any. Lifetime: returns by value.
#pragma once

#include <cstdint>
#include <string>

#include "net_socket/message/wire.h"

namespace tcpx {

inline ConnectionId Id(uint8_t number) {
  ConnectionId id{};
  id[8] = number;
  return id;
}

inline std::string Record(FrameKind kind, const std::string& body) {
  FrameHeader header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(body.size());
  std::string frame(kHeaderBytes, '\0');
  EncodeHeader(header, &frame[0]);
  return frame + body;
}

inline std::string Notice(uint8_t number, const std::string& cause) {
  const ConnectionId id = Id(number);
  return Record(FrameKind::kError, std::string(id.begin(), id.end()) + cause);
}

}  // namespace tcpx
