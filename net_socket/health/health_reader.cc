#include "net_socket/health/health_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

std::vector<uint64_t> DecodeCounts(absl::string_view text) {
  std::vector<uint64_t> counts(text.size() / sizeof(uint64_t));
  if (!counts.empty()) std::memcpy(counts.data(), text.data(), counts.size() * sizeof(uint64_t));
  return counts;
}

}  // namespace

absl::Status HealthReader::Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  return frames_.Take(data, bytes, [this, notices](const FrameHeader& header, absl::string_view body) {
    if (header.kind == FrameKind::kBye) bye_ = true;
    const bool parting = header.kind == FrameKind::kParting;
    if ((header.kind == FrameKind::kError || parting) && body.size() >= sizeof(ConnectionId)) {
      HealthNotice notice;
      notice.parting = parting;
      std::memcpy(notice.connection.data(), body.data(), notice.connection.size());
      notice.cause = CauseText(body.substr(notice.connection.size()));
      notices->push_back(std::move(notice));
    }
    if (header.kind == FrameKind::kLeft && body.size() >= sizeof(ConnectionId)) {
      HealthNotice notice;
      std::memcpy(notice.connection.data(), body.data(), notice.connection.size());
      notice.left = true;
      notice.taken = DecodeCounts(body.substr(notice.connection.size()));
      notices->push_back(std::move(notice));
    }
    if (header.kind == FrameKind::kSilent && body.size() == sizeof(ConnectionId) + 2) {
      HealthNotice notice;
      std::memcpy(notice.connection.data(), body.data(), notice.connection.size());
      notice.silent =
          static_cast<uint8_t>(body[sizeof(ConnectionId)]) | static_cast<uint8_t>(body[sizeof(ConnectionId) + 1]) << 8;
      notices->push_back(std::move(notice));
    }
    return absl::OkStatus();
  });
}

}  // namespace tcpx
