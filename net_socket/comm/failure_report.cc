#include "net_socket/comm/failure_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/health/lane_liveness.h"

namespace tcpx {
namespace {

std::string LaneText(const Trouble& trouble) {
  const int lanes = trouble.setup->CountLanes(trouble.lanes);
  int lane = trouble.lane;
  if (lanes <= 1) lane = 0;
  if (lane == kNoLane) return absl::StrFormat("all %d lanes", lanes);
  return absl::StrFormat("lane %d of %d", lane, std::max(lanes, 1));
}

const LaneSocket& SocketOf(const Trouble& trouble) {
  return trouble.setup->lanes[static_cast<size_t>(std::max(trouble.lane, 0))];
}

// The same on both ends, so that their logs can be matched.
std::string ShortId(const ConnectionSetup& setup) {
  const auto& id = setup.connection_id;
  return absl::StrFormat("%02x%02x%02x%02x", id[8], id[9], id[10], id[11]);
}

}  // namespace

std::string ReportLine(const Trouble& trouble) {
  const ConnectionSetup& setup = *trouble.setup;
  const LaneSocket& socket = SocketOf(trouble);
  std::string text = absl::StrFormat("comm %x %s device %d %s, %s to %s, connection %s: %s", setup.communicator->id,
                                     trouble.role, setup.device, LaneText(trouble), socket.local.ToString(),
                                     socket.peer.ToString(), ShortId(setup), trouble.what);
  const std::string flight = DescribeFlight(trouble.flight);
  absl::StrAppend(&text, "; in flight: ", flight.empty() ? "nothing" : flight);
  LaneTcpInfo info;
  if (ReadLaneTcpInfo(socket.fd.get(), &info)) absl::StrAppend(&text, "; ", DescribeTcpInfo(info));
  return text;
}

std::string CauseLine(const Trouble& trouble) {
  const LaneSocket& socket = SocketOf(trouble);
  std::string text =
      absl::StrFormat("%s lost %s (%s, device %d, %s): %s", socket.local.ToString(), socket.peer.ToString(),
                      trouble.role, trouble.setup->device, LaneText(trouble), trouble.what);
  text.resize(std::min(text.size(), kCauseBytesMax));
  return text;
}

}  // namespace tcpx
