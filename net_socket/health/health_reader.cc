#include "net_socket/health/health_reader.h"

#include <utility>

#include "absl/strings/string_view.h"

namespace tcpx {

absl::Status HealthReader::Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  return frames_.Take(data, bytes, [this, notices](const FrameHeader& header, absl::string_view body) {
    if (header.kind == FrameKind::kBye) bye_ = true;
    HealthNotice notice;
    if (DecodeNotice(header.kind, body, &notice)) notices->push_back(std::move(notice));
    return absl::OkStatus();
  });
}

}  // namespace tcpx
