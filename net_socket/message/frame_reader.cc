#include "net_socket/message/frame_reader.h"

#include "net_socket/message/failure_kind.h"

namespace tcpx {

absl::Status FrameReader::Take(const char* data, size_t bytes, Visitor visit) {
  pending_.append(data, bytes);
  while (pending_.size() >= kHeaderBytes) {
    FrameHeader header;
    const char* wrong = DecodeHeader(pending_.data(), &header);
    if (wrong == nullptr && header.kind == FrameKind::kChunk) wrong = chunk_is_;
    if (wrong != nullptr) return GarbageError(wrong);
    const size_t frame = kHeaderBytes + header.length + header.padding;
    if (pending_.size() < frame) break;
    const absl::Status seen = visit(header, absl::string_view(pending_).substr(kHeaderBytes, header.length));
    if (!seen.ok()) return seen;
    pending_.erase(0, frame);
  }
  return absl::OkStatus();
}

}  // namespace tcpx
