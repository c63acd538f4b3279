// frame_reader.h: cuts a stream of records into records, however it arrives.
//
// Purpose: lanes in their reverse direction and health sockets carry records only; the listener gets each once it is
//          whole. Pure.
// Threads: one at a time. Units: bytes.
// Errors:  kUnavailable for what is no record, and whatever the visitor returns. Either stays: the frame in question is
//          not taken out, so every later Take meets it again.
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class FrameReader {
 public:
  using Visitor = absl::FunctionRef<absl::Status(const FrameHeader& header, absl::string_view body)>;

  // `chunk_is`: what is wrong with a message on this stream (static storage). `reserve`: bytes that never allocate.
  explicit FrameReader(const char* chunk_is, size_t reserve = 0) : chunk_is_(chunk_is) { pending_.reserve(reserve); }

  // Takes what has arrived; `visit` sees each record that is whole, of whatever kind, until it returns an error.
  absl::Status Take(const char* data, size_t bytes, Visitor visit) {
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

 private:
  const char* chunk_is_;
  std::string pending_;  // less than one frame
};

}  // namespace tcpx
