#include "net_socket/comm/stall_probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/host_knock.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"
#include "net_socket/health/cpu_shortage.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

// As it suspects a lane.
constexpr int64_t kSilentMs = tuning::kSilentNs / kMillisecond;

// 0: none is silent.
int64_t LongestSilence(const std::vector<LaneEvidence>& lanes) {
  int64_t longest_ms = 0;
  for (const LaneEvidence& lane : lanes) longest_ms = std::max(longest_ms, lane.silent ? lane.silent_ms : 0);
  return longest_ms;
}

}  // namespace

int64_t StallProbe::EveryNs() const {
  const int64_t warn_ns = setup_->runtime->options.stall_warn_ns;
  return std::clamp<int64_t>(warn_ns / tuning::kLooksAWarn, tuning::kStallLookMinNs, tuning::kStallLookMaxNs);
}

void StallProbe::LookInLoop(const Flight& flight, int64_t since_ns, int64_t now_ns) {
  if (setup_->runtime->options.stall_warn_ns == 0) return;
  setup_->runtime->knocks->Look(now_ns);  // The connection that asked may no longer wait.
  if (flight.messages > 0) LookAtCpu(now_ns);
  flight_ = flight;
  const bool stalled = since_ns != 0 && now_ns - since_ns >= EveryNs();
  if (since_ns != since_ns_ || !stalled) {
    if (stuck_ns_ == 0 || now_ns - stuck_ns_ > tuning::kStuckLooks * EveryNs()) verdict_ = Verdict();
    if (verdict_.cause == Cause::kNone) stuck_ns_ = 0;
    root_ = WaitRoot();
    lanes_.was_idle = heard_ = false;
    asked_ns_ = reported_.at_ns = lanes_.at_ns = 0;
  }
  since_ns_ = stalled ? since_ns : 0;
  if (stalled) {
    Judge(now_ns);
    const bool asked = setup_->communicator->stalls->AskInLoop(key(), now_ns);
    if (asked && asked_ns_ == 0) asked_ns_ = now_ns;
  } else {
    Put(now_ns);
  }
}

void StallProbe::LookAtCpu(int64_t now_ns) {
  CpuShortage* const shortage = setup_->runtime->cpu_shortage.get();
  shortage->NoteCaller(end_->CallerThread());
  setup_->communicator->stalls->SetNoCpuInLoop(shortage->Percent(now_ns, EveryNs() * tuning::kCpuLookPercent / 100));
}

void StallProbe::HearInLoop(const std::string& text, int64_t now_ns) {
  WaitNews news;
  if (failure_->failed() || !DecodeNews(text, &news)) return;
  const WaitRoot& root = news.root;
  const bool same =
      root.finder == peer_.root.finder && root.serial == peer_.root.serial && root.candidate == peer_.root.candidate;
  if (!same || root_news_ns_ == 0) root_news_ns_ = now_ns;
  const bool asks = news.asks;
  peer_ = std::move(news);
  heard_ = true;
  heard_ns_ = now_ns;
  asked_ns_ = 0;
  if (since_ns_ != 0) Judge(now_ns);
  if (!asks) return;
  LookAtCpu(now_ns);
  flight_ = end_->FlightNow();
  if (since_ns_ == 0) JudgeUnposted(now_ns);
  Put(now_ns);
  setup_->communicator->stalls->AskedInLoop(key(), now_ns);
}

void StallProbe::LeaveInLoop() {
  since_ns_ = 0;
  root_ = WaitRoot();
  setup_->communicator->stalls->LeaveInLoop(key());
  place_ = nullptr;
}

void StallProbe::Judge(int64_t now_ns) {
  Verdict verdict = JudgeStall(Gather(now_ns));
  if (!verdict.undecided) verdict_ = std::move(verdict);
  Put(now_ns);
  root_ = setup_->communicator->stalls->root_in_loop();
}

// The peer waits, and this end may have nothing posted: what was sent is done once the kernel has it, and may be stuck
// there.
void StallProbe::JudgeUnposted(int64_t now_ns) {
  StallEvidence evidence = Gather(now_ns);
  evidence.idle_here = lanes_.was_idle = false;
  evidence.peer = nullptr;
  verdict_ = JudgeStall(evidence);
  stuck_ns_ = verdict_.cause == Cause::kNone ? 0 : now_ns - EveryNs();
}

void StallProbe::Count(StallMember* member) const {
  member->messages_done = end_->MessagesDone();
  member->posted = static_cast<uint32_t>(flight_.messages);
  member->sequence = flight_.sequence;
}

void StallProbe::Put(int64_t now_ns) {
  const int64_t since_ns = since_ns_ != 0 ? since_ns_ : stuck_ns_;
  if (since_ns == 0 && place_ != nullptr && place_->stalled_since_ns == 0) return Count(place_);
  StallMember member{setup_->health, setup_->connection_id, PeerName(*setup_), setup_->sends()};
  Count(&member);
  member.stalled_since_ns = since_ns;
  member.verdict = verdict_;
  member.peer_root = peer_.root;
  place_ = setup_->communicator->stalls->PutInLoop(key(), std::move(member), now_ns);
}

StallEvidence StallProbe::Gather(int64_t now_ns) {
  StallEvidence evidence;
  Runtime* const runtime = setup_->runtime;
  evidence.sends = setup_->sends();
  evidence.no_cpu_percent = runtime->cpu_shortage->Percent(now_ns, EveryNs() * tuning::kCpuLookPercent / 100);
  evidence.self = setup_->communicator->stalls->self();
  evidence.here = ThisProcessName();
  evidence.there = PeerName(*setup_);
  evidence.caller_moves = runtime->pool == nullptr || runtime->gpu != nullptr ||
                          failure_->healing().lanes().CountMade() <= 1 || flight_.bytes_total <= setup_->express_bytes;
  if (evidence.sends) {  // A receiver may have nothing to move.
    failure_->healing().Judge([&](Arbiter* arbiter) {
      evidence.stuck = arbiter->stuck();
      evidence.unsettled = arbiter->Unsettled(now_ns);
    });
  }
  GatherLanes(now_ns);
  evidence.lanes = lanes_.evidence;
  evidence.idle_here = lanes_.idle_here;
  GatherHealth(now_ns, &evidence);
  if (now_ns - root_news_ns_ > tuning::kStaleLooks * EveryNs() + tuning::kStaleMoreNs) peer_.root = WaitRoot();
  if (heard_) evidence.peer = &peer_;
  const int64_t silent_ms = evidence.health_lost ? LongestSilence(lanes_.evidence) : evidence.unheard_ms;
  const bool quiet = silent_ms >= kSilentMs;
  const bool suspect = evidence.health_lost || quiet ||
                       std::any_of(evidence.lanes.begin(), evidence.lanes.end(),
                                   [](const LaneEvidence& lane) { return lane.silent || lane.lost; });
  if (!suspect) return evidence;
  evidence.down = DownInterface(failure_->healing());
  if (!quiet) return evidence;  // An acknowledgement may merely be under way.
  // By a port that the peer has named: the one that was dialled, or the one it has dialled from, where its kernel
  // refuses.
  const LaneSocket& lane = setup_->lanes[0];
  evidence.host_answers =
      runtime->knocks->Answers({lane.local, lane.peer, setup_->sends()}, now_ns - silent_ms * kMillisecond, now_ns);
  return evidence;
}

// News come from thousands of connections at once: what the kernel knows of the lanes is not asked for each.
void StallProbe::GatherLanes(int64_t now_ns) {
  if (lanes_.at_ns != 0 && now_ns - lanes_.at_ns < tuning::kLanesKeptNs) return;
  lanes_.at_ns = now_ns;
  lanes_.evidence.clear();
  bool holds = false;
  const bool sends = setup_->sends();
  bool all_unread = true;
  int64_t longest_ms = -1;
  for (int i = 0; i < setup_->lane_count(); ++i) {
    const int fd = setup_->lane_fd(i);
    if (fd < 0) continue;
    lanes_.evidence.push_back(GatherLane(i, now_ns, &holds));
    // A peer that sends what comes later and leaves out what is due parks every lane: that is no fault of ours.
    const bool held = !end_->lanes()->parked(i) && (end_->lanes()->holds(i) || UnreadBytes(fd) > 0);
    all_unread = all_unread && !sends && held;
    const LaneEvidence& lane = lanes_.evidence.back();
    if (!lane.silent || lane.silent_ms <= longest_ms) continue;
    longest_ms = lane.silent_ms;
    lanes_.lane = i;
  }
  const bool idle = !lanes_.evidence.empty() && (sends ? !holds : all_unread);
  lanes_.idle_here = idle && lanes_.was_idle;
  lanes_.was_idle = idle;
}

LaneEvidence StallProbe::GatherLane(int lane, int64_t now_ns, bool* holds) const {
  const LaneSocket& socket = setup_->lanes[static_cast<size_t>(lane)];
  LaneEvidence evidence;
  LaneTcpInfo info;
  evidence.lane = lane;
  const int64_t lost_ns = failure_->healing().lanes().lost_since_ns(lane);
  evidence.lost = lost_ns != 0;
  if (evidence.lost) {
    evidence.lost_ms = (now_ns - lost_ns) / kMillisecond;
  } else if (ReadLaneTcpInfo(socket.fd.get(), &info)) {
    *holds = *holds || info.held_bytes > 0;
    const bool in_vain = info.resent >= tuning::kUnansweredMin || info.probes > tuning::kUnansweredMin;
    evidence.silent_ms = info.heard_ms();
    evidence.silent = info.held_bytes > 0 && in_vain && evidence.silent_ms >= kSilentMs;
  }
  if (!evidence.silent) return evidence;
  const SocketAddress local = LocalAddress(socket.fd.get()).value_or(socket.local);
  const SocketAddress peer = PeerAddress(socket.fd.get()).value_or(socket.peer);
  evidence.hosts = absl::StrCat(local.HostString(), " ", peer.HostString());
  evidence.flow = absl::StrCat(local.ToString(), " to ", peer.ToString());
  return evidence;
}

void StallProbe::GatherHealth(int64_t now_ns, StallEvidence* evidence) {
  if (setup_->health == nullptr) return;
  LaneTcpInfo info;
  std::string hosts;
  const bool silent =
      std::any_of(evidence->lanes.begin(), evidence->lanes.end(), [](auto& lane) { return lane.silent; });
  evidence->speaks = !setup_->health->waits().peer_name().empty();
  evidence->heard_now = heard_ns_ != 0 && now_ns - heard_ns_ < tuning::kJustNowNs;
  evidence->health_lost = !setup_->health->socket().ReadTcp(&info, silent ? &hosts : nullptr);
  if (evidence->health_lost || !evidence->speaks) return;
  const int64_t asked_ms = asked_ns_ == 0 ? 0 : (now_ns - asked_ns_) / kMillisecond;
  if (info.held_bytes > 0) {
    evidence->unheard_ms = std::min(info.heard_ms(), asked_ms);
  } else if (asked_ms > 0) {
    // A process that says anything at all is not stopped.
    const int64_t since_ns = std::max(asked_ns_, setup_->health->socket().heard_ns());
    evidence->unanswered_ms = std::max<int64_t>((now_ns - since_ns) / kMillisecond, 1);
  }
  evidence->health_apart = std::all_of(evidence->lanes.begin(), evidence->lanes.end(),
                                       [&](const LaneEvidence& lane) { return !lane.silent || lane.hosts != hosts; });
}

bool StallProbe::Reports(bool stalled, int64_t now_ns) {
  if (since_ns_ == 0 && !stalled) return false;
  const bool another = reported_.at_ns != 0 && root_.known() && now_ns - reported_.at_ns >= reported_.again_ns &&
                       (root_.cause != reported_.root.cause || root_.culprit != reported_.root.culprit);
  if (!stalled && !another) return false;
  reported_.again_ns = stalled ? setup_->runtime->options.stall_warn_ns : 2 * reported_.again_ns;
  reported_.root = root_;
  reported_.at_ns = now_ns;
  return true;
}

}  // namespace tcpx
