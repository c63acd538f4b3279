#include "net_socket/health/health_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

// Numbers lie on the wire as in memory (message/wire.cc).
std::vector<uint64_t> DecodeCounts(absl::string_view text) {
  std::vector<uint64_t> counts(text.size() / sizeof(uint64_t));
  if (!counts.empty()) std::memcpy(counts.data(), text.data(), counts.size() * sizeof(uint64_t));
  return counts;
}

// False: nothing of interest, or nonsense; a newer peer may say more.
bool DecodeNotice(FrameKind kind, absl::string_view body, HealthNotice* notice) {
  if (body.size() < sizeof(ConnectionId)) return false;
  std::memcpy(notice->connection.data(), body.data(), sizeof(ConnectionId));
  body.remove_prefix(sizeof(ConnectionId));
  notice->parting = kind == FrameKind::kParting;
  notice->left = kind == FrameKind::kLeft;
  if (notice->left) {
    notice->taken = DecodeCounts(body);
  } else if (kind == FrameKind::kSilent) {
    uint16_t lane = 0;
    if (body.size() != sizeof(lane)) return false;
    std::memcpy(&lane, body.data(), sizeof(lane));
    notice->silent = lane;
  } else if (kind == FrameKind::kWaits) {
    notice->waits = std::string(body);
    return !body.empty();
  } else if (notice->parting || kind == FrameKind::kError) {
    notice->cause = CauseText(body);
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::Status HealthReader::Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  return frames_.Take(data, bytes, [this, notices](const FrameHeader& header, absl::string_view body) {
    if (header.kind == FrameKind::kBye) bye_ = true;
    HealthNotice notice;
    if (DecodeNotice(header.kind, body, &notice)) notices->push_back(std::move(notice));
    return absl::OkStatus();
  });
}

}  // namespace tcpx
