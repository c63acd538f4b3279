#include "net_socket/comm/progress_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"
#include "net_socket/health/cpu_shortage.h"
#include "net_socket/message/failure_kind.h"

namespace tcpx {
namespace {

// No application means these: they are reported without NCCL_DEBUG=INFO, too.
bool IsFault(Cause cause) {
  return cause == Cause::kProcessStopped || cause == Cause::kProcessGone || cause == Cause::kHostGone;
}

}  // namespace

Watchdog::Next ProgressCheck::LookInLoop(int64_t now_ns) {
  if (!failure_->failed()) LookAtLanes(now_ns);
  const Flight flight = end_->FlightNow();
  if (!failure_->failed()) LookAtRequests(flight, now_ns);
  if (failure_->failed()) probe_.LeaveInLoop();
  const uint64_t done = end_->MessagesDone();
  const bool idle = flight.messages == 0 && done == messages_done_;
  messages_done_ = done;
  if (now_ns - slow_ns_ > tuning::kSlowKeptLongs * setup_->runtime->options.stall_warn_ns) slow_ = Verdict();
  if (idle && slow_.cause == Cause::kNone && !AnyQueued()) return Watchdog::Next::kIdle;
  if (idle || failure_->failed()) return Watchdog::Next::kLook;
  LookAtLosses(now_ns);
  LookAtPaces(now_ns);
  return Watchdog::Next::kLook;
}

bool ProgressCheck::AnyQueued() const {
  const auto queued = [](const LaneSocket& lane) { return lane.fd.valid() && QueuedBytes(lane.fd.get()) > 0; };
  return std::any_of(setup_->lanes.begin(), setup_->lanes.end(), queued);
}

void ProgressCheck::LookAtLanes(int64_t now_ns) {
  const int64_t timeout_ns = setup_->runtime->options.peer_timeout_ns;
  for (int lane = 0; lane < setup_->lane_count(); ++lane) {
    const int fd = setup_->lane_fd(lane);
    LaneTcpInfo info;
    if (fd < 0 || QueuedBytes(fd) <= 0) {  // A place without a socket, or nothing sent.
      failure_->healing().Judge([lane](Arbiter* arbiter) { arbiter->ForgetLife(lane); });
    } else if (ReadLaneTcpInfo(fd, &info) &&
               failure_->healing().Judge([&](Arbiter* arbiter) { return arbiter->Dead(lane, info, now_ns); })) {
      const std::string text = absl::StrFormat(
          "nothing that was sent has been acknowledged for %.1f s (TCPX_PEER_TIMEOUT is %.1f s): the network drops "
          "this flow, or the host is gone; look for a firewall, a bad link or a wrong MTU between the two addresses",
          info.last_ack_ms * 1e-3, timeout_ns * 1e-9);
      failure_->FailFound(FailureOf(FailureKind::kSilence, text), lane);
      return;
    }
  }
}

void ProgressCheck::LookAtRequests(const Flight& flight, int64_t now_ns) {
  const Options& options = setup_->runtime->options;
  const bool stalled = stall_.Stalled(flight, now_ns, options.stall_warn_ns);
  probe_.LookInLoop(flight, stall_.since_ns(), now_ns);
  if (probe_.Reports(stalled, now_ns)) LogStall(now_ns);
  LookAtCpu(flight, now_ns);
  failure_->healing().Judge([this](Arbiter* arbiter) { arbiter->PeerWaited(probe_.peer_waits_ns()); });
  const bool stuck = stall_.since_ns() != 0 && now_ns - stall_.since_ns() >= options.peer_timeout_ns;
  if (!stuck) return;
  if (peer_ended_.load(std::memory_order_relaxed)) {
    failure_->FailFound(absl::UnavailableError(kPeerVanished), kNoLane);
  } else if (end_->lanes()->AnyEnded()) {
    failure_->FailFound(absl::UnavailableError("a lane has ended without its connection"), kNoLane);
  }
}

void ProgressCheck::LogStall(int64_t now_ns) {
  std::string text = absl::StrFormat("no progress for %.1f s; ", (now_ns - stall_.since_ns()) * 1e-9);
  const WaitRoot& root = probe_.root();
  if (root.known()) {
    absl::StrAppend(&text, kVerdictMark, CauseName(root.cause), ": ", probe_.Why());
  } else {
    text +=
        "nothing is wrong with the connection as far as is known: the peer may be busy, stopped or waiting for another "
        "rank";
  }
  const std::string report = failure_->Report(text, probe_.lane());
  if (IsFault(root.cause)) {
    TCPX_WARN_TO(setup_->communicator->log, "%s", report);
  } else {
    TCPX_INFO_TO(setup_->communicator->log, "%s", report);
  }
}

void ProgressCheck::NoteSlow(const Verdict& verdict, int64_t now_ns) {
  slow_ = verdict;
  slow_ns_ = now_ns;
}

Verdict ProgressCheck::PaceVerdict(size_t lane, bool slow) const {
  return JudgePace(losses_.share(lane), slow, ThisProcessName(), PeerName(*setup_));
}

void ProgressCheck::LookAtLosses(int64_t now_ns) {
  const int64_t long_ns = setup_->runtime->options.stall_warn_ns;
  if (long_ns == 0 || !setup_->sends() || !losses_.Due(now_ns, long_ns)) return;
  std::vector<LaneSegments> segments(setup_->lanes.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    LaneTcpInfo info;
    const int fd = setup_->lanes[i].fd.get();
    if (fd < 0 || !ReadLaneTcpInfo(fd, &info)) continue;
    // A host without CPU answers late, and what is sent again for that was not lost.
    segments[i] = {info.segments_sent, info.retransmissions - info.needless};
  }
  if (!losses_.Look(segments, now_ns, long_ns)) return;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Verdict verdict = PaceVerdict(i, false);
    const bool loses = verdict.cause == Cause::kPathLoses;
    if (loses) NoteSlow(verdict, now_ns);
    if (!losses_.News(i, loses)) continue;
    TCPX_INFO_TO(
        setup_->communicator->log, "%s",
        failure_->Report(VerdictPrefix(verdict) + "look for a bad link, an overfull queue or a policer on the path",
                         static_cast<int>(i)));
  }
}

// A request that moves slowly because it has no CPU never stalls; why one does, the probe says.
void ProgressCheck::LookAtCpu(const Flight& flight, int64_t now_ns) {
  const int64_t long_ns = setup_->runtime->options.stall_warn_ns;
  const int percent = setup_->runtime->cpu_shortage->percent();
  if (long_ns == 0 || percent == 0 || flight.messages == 0) {
    short_since_ns_ = 0;
    return;
  }
  if (short_since_ns_ == 0) short_since_ns_ = now_ns;
  if (now_ns - short_since_ns_ < long_ns || probe_.since_ns() != 0) return;
  Verdict verdict{Cause::kNoCpu};
  verdict.culprit = ThisProcessName();
  verdict.evidence = absl::StrCat("one was ready to run, and had no CPU, for ", percent, " % of the time");
  NoteSlow(verdict, now_ns);
  if (std::exchange(logged_short_, true) || !setup_->runtime->cpu_shortage->FirstToLog()) return;
  TCPX_INFO_TO(setup_->communicator->log, "%s",
               failure_->Report(VerdictPrefix(verdict) + "give this rank more CPUs, or the host fewer threads", 0));
}

void ProgressCheck::LookAtPaces(int64_t now_ns) {
  const int64_t long_ns = setup_->runtime->options.stall_warn_ns;
  if (long_ns == 0) return;
  for (const SlowLane& slow : slowness_.Look(end_->lanes()->Paces(), now_ns, long_ns)) {
    slow_lanes_.Add();
    const std::string text = absl::StrFormat(
        "a slow lane: %.1f MB/s for %.1f s, where its connection's lanes do %.1f; it is given less to carry; look at "
        "the path of this flow (a bad link, a crowded queue, a limit per flow)",
        slow.bytes_per_second * 1e-6, long_ns * 1e-9, slow.median * 1e-6);
    const size_t lane = slow.lane + 1;
    const Verdict verdict = PaceVerdict(lane, true);
    slow_ = verdict;
    TCPX_INFO_TO(setup_->communicator->log, "%s",
                 failure_->Report(VerdictPrefix(verdict) + text, static_cast<int>(lane)));
  }
  // It is named once, and stays slow.
  if (slowness_.any()) slow_ns_ = now_ns;
}

}  // namespace tcpx
