#include "net_socket/comm/failure_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/interfaces.h"
#include "common/status.h"
#include "common/tcp_info.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/lane_healing.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/message/failure_kind.h"

namespace tcpx {
namespace {

std::string LaneText(const LaneHealing& healing, int lane) {
  const int lanes = healing.lanes().CountMade();
  if (lanes <= 1) lane = 0;
  if (lane == kNoLane) return absl::StrFormat("all %d lanes", lanes);
  return absl::StrFormat("lane %d of %d", lane, std::max(lanes, 1));
}

const LaneSocket& SocketOf(const ConnectionSetup& setup, int lane) {
  return setup.lanes[static_cast<size_t>(std::max(lane, 0))];
}

// The same on both ends, so that their logs can be matched.
std::string ShortId(const ConnectionSetup& setup) {
  const auto& id = setup.connection_id;
  return absl::StrFormat("%02x%02x%02x%02x", id[8], id[9], id[10], id[11]);
}

bool Established(int fd) {
  TcpInfo info;
  return fd >= 0 && ReadTcpInfo(fd, &info) && info.established;
}

bool AnyEstablished(const LaneHealing& healing, int but) {
  for (int lane = 0; lane < healing.setup().lane_count(); ++lane) {
    if (lane != but && healing.lanes().made(lane) && Established(healing.setup().lane_fd(lane))) return true;
  }
  return false;
}

bool HealthHeard(const ConnectionSetup& setup) {
  LaneTcpInfo info;
  if (setup.health == nullptr || !setup.health->socket().ReadTcp(&info)) return false;
  return info.heard_ms() * kMillisecond < setup.runtime->options.peer_timeout_ns * tuning::kHealthHeardPercent / 100;
}

}  // namespace

std::string ReportLine(const LaneHealing& healing, absl::string_view what, int lane, const Flight& flight) {
  const ConnectionSetup& setup = healing.setup();
  const LaneSocket& socket = SocketOf(setup, lane);
  std::string text = absl::StrFormat("comm %x %s device %d %s, %s to %s, connection %s: %s", setup.communicator->id,
                                     DirectionName(setup.direction), setup.device, LaneText(healing, lane),
                                     socket.local.ToString(), socket.peer.ToString(), ShortId(setup), what);
  const std::string moving = DescribeFlight(flight);
  absl::StrAppend(&text, "; in flight: ", moving.empty() ? "nothing" : moving);
  LaneTcpInfo info;
  if (ReadLaneTcpInfo(socket.fd.get(), &info)) absl::StrAppend(&text, "; ", DescribeTcpInfo(info));
  return text;
}

std::string CauseLine(const LaneHealing& healing, absl::string_view what, int lane) {
  const ConnectionSetup& setup = healing.setup();
  const LaneSocket& socket = SocketOf(setup, lane);
  std::string text =
      absl::StrFormat("%s lost %s (%s, device %d, %s): %s", socket.local.ToString(), socket.peer.ToString(),
                      DirectionName(setup.direction), setup.device, LaneText(healing, lane), what);
  text.resize(std::min(text.size(), kCauseBytesMax));
  return text;
}

bool ProcessGone(const LaneHealing& healing) {
  HealthPeer* const health = healing.setup().health.get();
  if (health == nullptr) return false;
  return health->socket().PeerVanished() || (health->socket().WasReset() && !AnyEstablished(healing, kNoLane));
}

std::string PeerName(const ConnectionSetup& setup) {
  std::string name = setup.health == nullptr ? "" : setup.health->waits().peer_name();
  return name.empty() ? setup.lanes[0].peer.HostString() : name;
}

std::string DownInterface(const LaneHealing& healing) {
  const ConnectionSetup& setup = healing.setup();
  for (int lane = 0; lane < setup.lane_count(); ++lane) {
    if (!healing.lanes().made(lane)) continue;
    const SocketAddress& local = setup.lanes[static_cast<size_t>(lane)].local;
    std::string down = setup.runtime->interfaces->Down(local, MonotonicNanos());
    if (!down.empty()) return down;
  }
  return "";
}

Verdict VerdictOfFailure(const LaneHealing& healing, const absl::Status& status, int lane) {
  FailureEvidence evidence;
  if (!absl::IsUnavailable(status)) return {};  // A shortage or a misuse here: its text says all.
  evidence.error = StatusErrno(status);
  evidence.garbage = KindOf(status) == FailureKind::kGarbage;
  evidence.process_gone = ProcessGone(healing);
  if (KindOf(status) == FailureKind::kLarge) evidence.stuck = Stuck::kSilent;
  if (KindOf(status) == FailureKind::kResets) evidence.stuck = Stuck::kReset;
  evidence.silent = KindOf(status) == FailureKind::kSilence || IsSilentErrno(evidence.error);
  evidence.health_heard = HealthHeard(healing.setup());
  evidence.others_up = AnyEstablished(healing, lane);
  if (evidence.silent) evidence.down = DownInterface(healing);
  evidence.here = ThisProcessName();
  evidence.there = PeerName(healing.setup());
  return JudgeFailure(evidence);
}

std::string VerdictPrefix(const Verdict& verdict) {
  if (verdict.cause == Cause::kNone) return "";
  std::string text =
      absl::StrCat(kVerdictMark, CauseName(verdict.cause), ": ", verdict.culprit, ": ", CauseWords(verdict.cause));
  if (!verdict.evidence.empty()) absl::StrAppend(&text, " (", verdict.evidence, ")");
  return text + "; ";
}

Verdict VerdictIn(absl::string_view line) {
  Verdict verdict;
  const size_t at = line.find(kVerdictMark);
  if (at == absl::string_view::npos) return verdict;
  const std::vector<absl::string_view> words =
      absl::StrSplit(line.substr(at + kVerdictMark.size()), absl::MaxSplits(": ", 2));
  for (int i = 1; i < kCauses && words.size() > 1; ++i) {
    if (words[0] == CauseName(static_cast<Cause>(i))) verdict.cause = static_cast<Cause>(i);
  }
  if (verdict.cause != Cause::kNone) verdict.culprit = std::string(words[1]);
  return verdict;
}

// Lanes of a fused device go by several paths.
std::string HealedVerdict(const LaneHealing& healing, Stuck stuck) {
  const ConnectionSetup& setup = healing.setup();
  if (stuck != Stuck::kNone) return VerdictPrefix(JudgeStuck(stuck, ThisProcessName(), PeerName(setup)));
  bool apart = false;
  for (int lane = 0; lane < setup.lane_count(); ++lane) {
    const SocketAddress& local = setup.lanes[static_cast<size_t>(lane)].local;
    apart = apart || (healing.lanes().made(lane) && !local.SameHostAddress(setup.lanes[0].local));
  }
  Verdict verdict{apart ? Cause::kPathDead : Cause::kFlowDropped};
  verdict.culprit = PathBetween(ThisProcessName(), PeerName(setup));
  return VerdictPrefix(verdict);
}

}  // namespace tcpx
