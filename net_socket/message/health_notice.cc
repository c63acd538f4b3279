#include "net_socket/message/health_notice.h"

#include <cstddef>

#include "net_socket/message/fields.h"

namespace tcpx {
namespace {

std::string Notice(FrameKind kind, const ConnectionId& id, absl::string_view rest) {
  return EncodeRecord(kind, FieldWriter().PutBytes(id.data(), id.size()).PutRest(rest).Take());
}

}  // namespace

std::string FailureNotice(const ConnectionId& id, absl::string_view cause, bool parting) {
  return Notice(parting ? FrameKind::kParting : FrameKind::kError, id, cause.substr(0, kCauseBytesMax));
}

std::string LeftNotice(const ConnectionId& id, const std::vector<uint64_t>& taken) {
  return Notice(FrameKind::kLeft, id, FieldWriter().PutBytes(taken.data(), taken.size() * sizeof(uint64_t)).Take());
}

std::string SilentNotice(const ConnectionId& id, int lane) {
  return Notice(FrameKind::kSilent, id, FieldWriter().Put(static_cast<uint16_t>(lane)).Take());
}

std::string WaitsNotice(const ConnectionId& id, absl::string_view waits) {
  return Notice(FrameKind::kWaits, id, waits);
}

std::string ClockNotice(absl::string_view clock) { return Notice(FrameKind::kClock, ConnectionId{}, clock); }

bool DecodeNotice(FrameKind kind, absl::string_view body, HealthNotice* notice) {
  FieldReader fields(body);
  fields.TakeBytes(notice->connection.data(), notice->connection.size());
  if (!fields.ok()) return false;
  const absl::string_view rest = fields.rest();
  switch (kind) {
    case FrameKind::kError:
    case FrameKind::kParting:
      notice->parting = kind == FrameKind::kParting;
      notice->cause = CauseText(rest);
      return true;
    case FrameKind::kLeft:
      notice->left = true;
      for (size_t i = rest.size() / sizeof(uint64_t); i > 0; --i) notice->taken.push_back(fields.Take<uint64_t>());
      return true;
    case FrameKind::kSilent:
      notice->silent = fields.Take<uint16_t>();
      return fields.ok() && fields.rest().empty();
    case FrameKind::kWaits:
      notice->waits = std::string(rest);
      return !rest.empty();
    case FrameKind::kClock:
      notice->clock = std::string(rest);
      return !rest.empty();
    default:
      return false;
  }
}

}  // namespace tcpx
