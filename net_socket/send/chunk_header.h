// chunk_header.h: the header of a chunk of a message.
//
// Threads: any. Units: bytes. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net_socket/message/request.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// The header of a chunk: `length` bytes of `request`, from `offset` on, and `padding` meaningless bytes after them.
inline void EncodeChunkHeader(const SendRequest& request, size_t offset, size_t length, uint16_t padding,
                              char* header_bytes) {
  FrameHeader header;
  header.padding = padding;
  header.length = static_cast<uint32_t>(length);
  header.sequence = request.sequence;
  header.offset = request.message_offset + offset;
  header.message_bytes = request.message_bytes;
  header.tag = request.tag;
  EncodeHeader(header, header_bytes);
}

}  // namespace tcpx
