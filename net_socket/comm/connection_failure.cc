#include "net_socket/comm/connection_failure.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/interfaces.h"
#include "common/log.h"
#include "common/status.h"
#include "common/tcp_info.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/message/flight.h"

namespace tcpx {
namespace {

// From one question for the reason to the next, at first.
constexpr int64_t kAskAgainNs = kMillisecond;

// Lines of what is not the peer's, or not tcpx, are few: somebody may bring it in connection after connection.
bool MayLog(const Runtime& runtime, const absl::Status& status, std::string* line) {
  const FailureKind kind = KindOf(status);
  if (kind != FailureKind::kGarbage && kind != FailureKind::kForged) return true;
  return runtime.foreign_lines->May(MonotonicNanos(), line);
}

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

// One line for every other rank: who lost whom, and why.
std::string CauseLine(const LaneHealing& healing, absl::string_view what, int lane) {
  const ConnectionSetup& setup = healing.setup();
  const LaneSocket& socket = SocketOf(setup, lane);
  std::string text =
      absl::StrFormat("%s lost %s (%s, device %d, %s): %s", socket.local.ToString(), socket.peer.ToString(),
                      DirectionName(setup.direction), setup.device, LaneText(healing, lane), what);
  text.resize(std::min(text.size(), kCauseBytesMax));
  return text;
}

// What ended the lanes is known to have been the end of the peer's process. One that had something unread resets its
// sockets as it ends; a firewall that resets one flow leaves the others.
bool ProcessGone(const LaneHealing& healing) {
  HealthPeer* const health = healing.setup().health.get();
  if (health == nullptr) return false;
  return health->socket().PeerVanished() || (health->socket().WasReset() && !AnyEstablished(healing, kNoLane));
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

}  // namespace

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

void ConnectionFailure::Fail(absl::Status status, int lane, Noise noise) {
  FailureGroup* const group = setup_->group();
  if (noise == Noise::kSilent && group != nullptr) group->Hush();
  if (failed()) return;
  // The reason why a lane ended may follow: the peer says it before it goes.
  if (noise == Noise::kWarn && setup_->health != nullptr && absl::IsUnavailable(status)) {
    if (state() == ConnectionState::kFailing) return;
    setup_->health->Poll();
    if (KindOf(status) == FailureKind::kBareEnd && !Explained()) return AwaitReason(std::move(status), lane);
  }
  FailKnown(std::move(status), lane, noise);
}

void ConnectionFailure::AwaitReason(absl::Status status, int lane) {
  {
    MutexLock lock(mutex_);
    if (!status_.ok() || unexplained_.has_value()) return;
    unexplained_ = {std::move(status), lane};
    MoveTo(ConnectionState::kFailing);
  }
  Reactor* const reactor = &setup_->runtime->reactor;
  const int64_t until_ns = MonotonicNanos() + tuning::kReasonNs;
  const auto ask = [self = self_, health = setup_->health, until_ns, after_ns = kAskAgainNs]() mutable {
    health->Poll();
    const bool late = MonotonicNanos() >= until_ns;
    if (self.Ask(true, [late](ConnectionFailure* one) { return one->MayFailInLoop(late); })) return Reactor::kOver;
    after_ns *= 2;
    return std::clamp<int64_t>(until_ns - MonotonicNanos(), 0, after_ns);
  };
  reactor->Post([reactor, ask] { reactor->RepeatInLoop(kAskAgainNs, ask); });
}

bool ConnectionFailure::MayFailInLoop(bool late) {
  if (!late && state() == ConnectionState::kFailing && !Explained()) return false;
  FailInTime();
  return true;
}

void ConnectionFailure::FailNow() {
  if (state() == ConnectionState::kFailing) setup_->health->Poll();
  FailInTime();
}

void ConnectionFailure::FailInTime() {
  if (state() != ConnectionState::kFailing) return;
  Unexplained found;
  {
    MutexLock lock(mutex_);
    found = *unexplained_;
  }
  FailKnown(std::move(found.status), found.lane, Noise::kWarn);
}

// What came from somebody else is reported, no matter what the peer says.
void ConnectionFailure::FailKnown(absl::Status status, int lane, Noise noise) {
  if (noise == Noise::kWarn && setup_->health != nullptr && absl::IsUnavailable(status) &&
      KindOf(status) != FailureKind::kForged) {
    const std::string cause = PeerParted();
    if (!cause.empty()) return FailWithPeer(cause);
    if (setup_->health->socket().PeerVanished()) {
      status = FailureOf(KindOf(status), absl::StrCat(status.message(), "; ", kPeerVanished));
    }
  }
  FailFor("", std::move(status), lane, noise);
}

void ConnectionFailure::FailFound(absl::Status status, int lane) {
  FailInTime();
  FailFor("", std::move(status), lane, Noise::kWarn);
}

Arbiter::Finding ConnectionFailure::LookAtLane(int lane, int64_t now_ns) {
  const Arbiter::Finding finding = healing_.LookAt(lane, now_ns);
  const auto warning = healing_.Judge([now_ns](Arbiter* arbiter) { return arbiter->Warns(now_ns); });
  if (warning.lane >= 0) WarnOf(warning);
  if (finding == Arbiter::Finding::kStuck) FailStuck(lane);
  return finding;
}

void ConnectionFailure::WarnOf(const Arbiter::Warning& warning) {
  const Stuck stuck = healing_.Judge([&](Arbiter* arbiter) { return arbiter->stuck(warning.lane); });
  const std::string verdict = VerdictPrefix(JudgeStuck(stuck, ThisProcessName(), PeerName(*setup_)));
  const char* what =
      "the lane gets one socket after the other, and none lasts; the plugin keeps trying, ever more slowly";
  if (warning.waits) {
    what =
        "the lane gets one socket after the other, and none has moved a byte for seconds; the plugin keeps trying, "
        "ever more slowly, for TCPX_PEER_TIMEOUT in all";
  }
  if (warning.lost) {
    what =
        "the lane was lost and has found no other socket for TCPX_PEER_TIMEOUT: new connections between the two "
        "addresses fail; the plugin keeps trying";
  }
  TCPX_WARN_TO(setup_->communicator->log, "%s", Report(verdict + what, warning.lane));
}

void ConnectionFailure::FailStuck(int lane) {
  const Stuck stuck = healing_.Judge([lane](Arbiter* arbiter) { return arbiter->stuck(lane); });
  FailureKind kind = FailureKind::kSilence;
  if (stuck == Stuck::kSilent) kind = FailureKind::kLarge;
  if (stuck == Stuck::kReset) kind = FailureKind::kResets;
  const std::string timeout = absl::StrFormat("%.1f s (TCPX_PEER_TIMEOUT)",
                                              static_cast<double>(setup_->runtime->options.peer_timeout_ns) * 1e-9);
  const std::string text =
      healing_.lanes().lost(lane)
          ? absl::StrCat("requests wait for the lane, and it has found no other socket for ", timeout,
                         ": new connections between the two addresses fail")
          : absl::StrCat("the lane has had something to send, and has moved no byte by any socket for ", timeout,
                         ": look for a wrong MTU, a firewall or a load balancer between the two addresses");
  FailFound(FailureOf(kind, text), lane);
}

void ConnectionFailure::FailWithPeer(const std::string& cause) {
  const FailureGroup* const group = setup_->group();
  const Noise noise = group != nullptr && group->Closing(MonotonicNanos()) ? Noise::kQuiet : Noise::kWarn;
  FailFor(cause, PeerError(cause), kNoLane, noise);
}

bool ConnectionFailure::Explained() const {
  if (failed() || peer_left() || !PeerParted().empty() || ProcessGone(healing_)) return true;
  const FailureGroup* const group = setup_->group();
  if (group != nullptr && !group->cause().empty()) return true;
  MutexLock lock(mutex_);
  return !status_.ok();
}

void ConnectionFailure::FailWithCommunicator(const std::string& cause) {
  FailFor(cause,
          FailureOf(FailureKind::kReported, absl::StrCat("another connection of the communicator failed: ", cause)),
          kNoLane, Noise::kQuiet);
}

void ConnectionFailure::FailFor(std::string cause, absl::Status status, int lane, Noise noise) {
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  FailureGroup* const group = setup_->group();
  if (noise == Noise::kWarn && setup_->fails_alone()) noise = Noise::kQuiet;
  std::unique_lock<Mutex> logging;
  if (group != nullptr) logging = group->Logging();
  std::string what(status.message());
  // A failure that follows from another one gets no verdict: nobody reads it, and there may be thousands.
  const bool first_here = group == nullptr || group->cause().empty();
  if (cause.empty() && noise == Noise::kWarn && first_here) verdict_ = VerdictOfFailure(healing_, status, lane);
  // Only its text comes from another rank.
  if (verdict_.cause == Cause::kNone && KindOf(status) == FailureKind::kReported) {
    verdict_ = VerdictIn(what);
  } else {
    what = VerdictPrefix(verdict_) + what;
  }
  if (cause.empty()) cause = CauseLine(healing_, what, lane);
  const bool first = JoinFailure(group, &cause, &noise);
  line_ = Report(what, lane);
  if (noise == Noise::kWarn && !MayLog(*setup_->runtime, status, &line_)) noise = Noise::kQuiet;
  // The line goes out before any call can return the error: the process may exit on it.
  if (noise == Noise::kWarn) TCPX_WARN_TO(setup_->communicator->log, "%s", line_);
  if (noise == Noise::kQuiet) TCPX_TRACE("%s", line_);
  MoveTo(ConnectionState::kFailed);
  if (logging.owns_lock()) logging.unlock();
  const bool parting = noise == Noise::kParting;
  const bool notified = noise != Noise::kSilent && setup_->health != nullptr &&
                        setup_->health->socket().Say(FailureNotice(setup_->connection_id, cause, parting));
  // The peer must not wait for lanes to come back.
  if ((!notified || parting) && setup_->heals) {
    (void)setup_->health->socket().Say(LeftNotice(setup_->connection_id, {}), /*may_go_unread=*/true);
  }
  if (!notified || parting) end_->lanes()->TellPeer(status.message());
  peer_notified_.store(true, std::memory_order_release);
  if (first) group->Spread(&setup_->runtime->reactor);
}

bool ConnectionFailure::JoinFailure(FailureGroup* group, std::string* cause, Noise* noise) {
  if (group == nullptr) return false;
  if (*noise == Noise::kParting) group->KeepQuiet(*cause);
  if (*noise == Noise::kParting || *noise == Noise::kSilent) return false;
  const bool first = group->Claim(*cause);
  if (!first) *cause = group->cause();
  if (*noise == Noise::kWarn && (!first || group->Quiet(*cause))) *noise = Noise::kQuiet;
  return first;
}

std::string ConnectionFailure::Report(absl::string_view what, int lane) const {
  const LaneSocket& socket = SocketOf(*setup_, lane);
  std::string text = absl::StrFormat("comm %x %s device %d %s, %s to %s, connection %s: %s", setup_->communicator->id,
                                     DirectionName(setup_->direction), setup_->device, LaneText(healing_, lane),
                                     socket.local.ToString(), socket.peer.ToString(), ShortId(*setup_), what);
  const std::string moving = DescribeFlight(end_->FlightNow());
  absl::StrAppend(&text, "; in flight: ", moving.empty() ? "nothing" : moving);
  LaneTcpInfo info;
  if (ReadLaneTcpInfo(socket.fd.get(), &info)) absl::StrAppend(&text, "; ", DescribeTcpInfo(info));
  return text;
}

absl::Status ConnectionFailure::Refusal() {
  if (!failed()) return absl::OkStatus();
  const int64_t every_ns = setup_->runtime->options.stall_warn_ns;
  if (setup_->communicator->repeat_warnings && every_ns > 0) {
    const int64_t now = MonotonicNanos();
    if (line_again_ns_ == 0) line_again_ns_ = now;
    if (now - line_again_ns_ >= every_ns) {
      line_again_ns_ = now;
      TCPX_WARN_TO(setup_->communicator->log, "still failed: %s", line_);
    }
  }
  return status();
}

}  // namespace tcpx
