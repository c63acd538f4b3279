#include "net_socket/health/verdict.h"

#include <errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/random.h"
#include "common/this_host.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

constexpr int64_t kUnansweredMs = tuning::kUnansweredNs / kMillisecond;
constexpr int64_t kUnheardMs = tuning::kUnheardNs / kMillisecond;
constexpr int64_t kLostMs = tuning::kLostNs / kMillisecond;
// A thread with a tenth of a CPU is slow, but nothing stalls for it.
constexpr int kStarvedPercent = 90;
// Below, a slow flow may have other reasons. A segment sent again now and then is nothing.
constexpr uint64_t kLossesMin = 10;
constexpr uint64_t kLossPerThousand = 5;

// By the number of the cause.
constexpr struct {
  const char* name;
  const char* words;
} kCauseTexts[kCauses] = {
    {"undecided", "the cause is not known"},
    {"process-stopped", "its process is stopped"},
    {"peer-late", "its process is alive, and NCCL, the application or the GPU there is late"},
    {"no-cpu", "its threads get no CPU"},
    {"path-loses", "the path loses packets"},
    {"path-dead", "the path is dead"},
    {"path-slow", "the path is slower than the others"},
    {"host-gone", "its host is gone, or cut off from the ranks that wait for it"},
    {"process-gone", "its process is gone"},
    {"flow-dropped", "a firewall or NAT on the path has dropped the flow"},
    {"internal", "internal: no reason is to be seen"},
    {"path-loses-large", "the path loses large packets"},
    {"flows-reset", "a middlebox resets flows"},
};

// As launchers name it: torchrun, Open MPI, PMIx, MPICH, Slurm.
std::string RankHere() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const value = getenv(name);
    if (value == nullptr || *value == '\0' || strlen(value) > 8) continue;
    if (strspn(value, "0123456789") == strlen(value)) return absl::StrCat(" (rank ", value, ")");
  }
  return "";
}

std::string Seconds(int64_t ms) { return absl::StrFormat("%.1f s", static_cast<double>(ms) * 1e-3); }

// Null: no lane is silent.
const LaneEvidence* MostSilent(const StallEvidence& evidence) {
  const LaneEvidence* most = nullptr;
  for (const LaneEvidence& lane : evidence.lanes) {
    if (lane.silent && (most == nullptr || lane.silent_ms > most->silent_ms)) most = &lane;
  }
  return most;
}

bool AnyLost(const StallEvidence& evidence) {
  return std::any_of(evidence.lanes.begin(), evidence.lanes.end(), [](auto& lane) { return lane.lost; });
}

bool Unsettled(const StallEvidence& evidence) { return evidence.unsettled || AnyLost(evidence); }

std::string DownText(const std::string& name) { return absl::StrCat("interface ", name, " of it is down"); }

template <typename Evidence>
std::string Between(const Evidence& evidence) {
  return PathBetween(evidence.here, evidence.there);
}

Verdict Hard(Cause cause, std::string culprit, std::string text) {
  return {cause, true, std::move(culprit), std::move(text)};
}

// A soft cause.
Verdict Late(std::string culprit, std::string text) {
  return {Cause::kPeerLate, false, std::move(culprit), std::move(text)};
}

Verdict NoCpu(std::string culprit, int percent) {
  return Hard(Cause::kNoCpu, std::move(culprit),
              absl::StrCat("they were ready to run, and had no CPU, for ", percent, " % of the time"));
}

// A lane is silent, and whether the peer is heard elsewhere will be known in a moment: then either one flow is dropped,
// or all are. It is never known for a peer that can't be asked.
bool Undecided(const StallEvidence& evidence) {
  const bool kernel_heard = evidence.unanswered_ms > 0;
  const bool known = evidence.heard_now || kernel_heard || evidence.unheard_ms >= kUnheardMs;
  return !known && !evidence.health_lost && evidence.down.empty() && MostSilent(evidence) != nullptr;
}

// What the network itself says. kNone: nothing.
Verdict JudgePath(const StallEvidence& evidence) {
  const LaneEvidence* const silent = MostSilent(evidence);
  const bool health_silent = evidence.unheard_ms >= kUnheardMs || evidence.health_lost;
  if (!evidence.down.empty() && (health_silent || silent != nullptr || AnyLost(evidence))) {
    return Hard(Cause::kPathDead, evidence.here, DownText(evidence.down));
  }
  if (health_silent && (evidence.unheard_ms >= kUnheardMs || silent != nullptr)) {
    if (evidence.host_answers) {
      return Hard(Cause::kFlowDropped, Between(evidence),
                  "its host answers a new connection, and on none of these sockets");
    }
    const int64_t ms = std::max(evidence.unheard_ms, silent == nullptr ? 0 : silent->silent_ms);
    return Hard(Cause::kHostGone, evidence.there,
                absl::StrCat("nothing of it was heard for ", Seconds(ms), " on any socket"));
  }
  if (silent == nullptr) return {};
  const LaneEvidence& lane = *silent;
  const std::string text = absl::StrCat("lane ", lane.lane, ", ", lane.flow, ": nothing acknowledged or heard for ",
                                        Seconds(lane.silent_ms), ", while the peer is heard on other sockets");
  return Hard(evidence.health_apart ? Cause::kPathDead : Cause::kFlowDropped, Between(evidence), text);
}

// Nothing and nobody holds this end up but itself. kNone: something may.
Verdict JudgeHere(const StallEvidence& evidence) {
  if (!evidence.idle_here || Unsettled(evidence)) return {};
  if (!evidence.caller_moves) {
    return Hard(Cause::kInternal, evidence.here,
                "bytes could be moved here, and the progress thread does not: a bug of tcpx");
  }
  return Late(evidence.here, "bytes could be moved here, and nobody calls test");
}

// Whether the peer's process is there. kNone: it is, or nobody knows.
Verdict JudgeProcess(const StallEvidence& evidence) {
  if (!evidence.speaks || evidence.unanswered_ms < kUnansweredMs) return {};
  return Hard(
      Cause::kProcessStopped, evidence.there,
      absl::StrCat("its kernel accepts data, and its process has not answered for ", Seconds(evidence.unanswered_ms)));
}

// A process that answers would have taken another socket for a lane that was lost. kNone: no lane has waited for long,
// or the process has neither answered nor had the time to.
Verdict JudgeLost(const StallEvidence& evidence) {
  const bool long_lost = std::any_of(evidence.lanes.begin(), evidence.lanes.end(),
                                     [](auto& lane) { return lane.lost && lane.lost_ms >= kLostMs; });
  const bool awaited = evidence.speaks && !evidence.health_lost && !evidence.heard_now && evidence.unheard_ms == 0;
  if (!long_lost || awaited) return {};
  return Hard(Cause::kFlowDropped, Between(evidence), "a lane has lost its socket, and no other gets through");
}

// What the peer has said.
Verdict JudgeNews(const StallEvidence& evidence) {
  const WaitNews& peer = *evidence.peer;
  if (peer.no_cpu_percent >= kStarvedPercent) return NoCpu(evidence.there, peer.no_cpu_percent);
  const WaitRoot& root = peer.root;
  if (root.known() && root.finder != evidence.self) {
    return {root.cause, root.cause != Cause::kPeerLate, root.culprit, root.evidence, true};
  }
  if (peer.stalled_ms > 0) {
    Verdict verdict;
    verdict.waits = true;
    return verdict;
  }
  if (peer.posted == 0) {
    return Late(evidence.there, evidence.sends ? "its receive is not posted" : "it has not posted the send");
  }
  return Late(evidence.there,
              evidence.sends ? "it has posted the receive only just now" : "it has posted the send only just now");
}

}  // namespace

Verdict JudgeStuck(Stuck stuck, absl::string_view here, absl::string_view there) {
  if (stuck == Stuck::kNone) return {};
  if (stuck == Stuck::kSilent) {
    return Hard(Cause::kPathLosesLarge, PathBetween(here, there),
                "small packets pass, and nothing large is acknowledged");
  }
  return Hard(Cause::kFlowsReset, PathBetween(here, there), "each socket is reset before a byte of it is acknowledged");
}

Verdict JudgeStall(const StallEvidence& evidence) {
  if (evidence.stuck != Stuck::kNone) return JudgeStuck(evidence.stuck, evidence.here, evidence.there);
  if (evidence.no_cpu_percent >= kStarvedPercent) return NoCpu(evidence.here, evidence.no_cpu_percent);
  Verdict verdict;
  verdict.undecided = Undecided(evidence);
  if (verdict.undecided) return verdict;
  for (const auto judge : {JudgePath, JudgeHere, JudgeProcess, JudgeLost}) {
    verdict = judge(evidence);
    if (verdict.cause != Cause::kNone) return verdict;
  }
  // Data that a host without incoming packets had queued is no answer; nor is what comes between two sockets of a lane.
  verdict.undecided = evidence.unheard_ms > 0 || Unsettled(evidence);
  if (verdict.undecided) return verdict;
  if (evidence.peer != nullptr && evidence.unanswered_ms < kUnansweredMs) return JudgeNews(evidence);
  return {};
}

Verdict JudgeFailure(const FailureEvidence& evidence) {
  // What was wrong says it: no cause of ours, and no fault of tcpx.
  if (evidence.garbage) return {};
  if (evidence.process_gone) return Hard(Cause::kProcessGone, evidence.there, "");
  if (evidence.stuck != Stuck::kNone) return JudgeStuck(evidence.stuck, evidence.here, evidence.there);
  if (evidence.silent) {
    if (!evidence.down.empty()) return Hard(Cause::kPathDead, evidence.here, DownText(evidence.down));
    return evidence.health_heard ? Hard(Cause::kFlowDropped, Between(evidence), "")
                                 : Hard(Cause::kHostGone, evidence.there, "");
  }
  if (evidence.error == ECONNREFUSED) return Hard(Cause::kProcessGone, evidence.there, "");
  if (evidence.error != 0 && evidence.health_heard && evidence.others_up) {
    return Hard(Cause::kFlowDropped, Between(evidence), "");
  }
  return {};
}

Verdict JudgePace(const LaneSegments& share, bool slow, absl::string_view here, absl::string_view there) {
  // The other direction may lose nothing.
  const std::string from_here = absl::StrCat("the path between ", here, " and ", there);
  if (share.retransmitted >= kLossesMin && share.retransmitted * 1000 >= share.sent * kLossPerThousand) {
    const double percent =
        100.0 * static_cast<double>(share.retransmitted) / static_cast<double>(std::max<uint64_t>(share.sent, 1));
    return Hard(Cause::kPathLoses, from_here,
                absl::StrFormat("%.1f %% of %d segments were sent again", percent, share.sent));
  }
  return slow ? Hard(Cause::kPathSlow, from_here, "") : Verdict();
}

std::string PathBetween(absl::string_view here, absl::string_view there) {
  return absl::StrCat("the path between ", std::min(here, there), " and ", std::max(here, there));
}

const char* CauseName(Cause cause) { return kCauseTexts[static_cast<size_t>(cause)].name; }

const char* CauseWords(Cause cause) { return kCauseTexts[static_cast<size_t>(cause)].words; }

std::string DescribeRoot(absl::string_view who, const WaitRoot& root) {
  std::string text(who);
  const char* waits = " waits for ";
  for (const std::string& link : root.chain) {
    absl::StrAppend(&text, waits, link);
    waits = ", which waits for ";
  }
  if (root.culprit != (root.chain.empty() ? who : absl::string_view(root.chain.back()))) {
    absl::StrAppend(&text, root.chain.size() == kChainMax ? ", ... which waits for " : waits, root.culprit);
  }
  absl::StrAppend(&text, ": ", CauseWords(root.cause));
  if (!root.evidence.empty()) absl::StrAppend(&text, " (", root.evidence, ")");
  return text;
}

// Without a destructor: at exit other threads may still ask, and a plugin that is unloaded must not leave it.
absl::string_view ThisProcessName() {
  struct Name {
    char text[128] = "";
    size_t bytes = 0;
  };
  static const Name name = [] {
    const std::string text = absl::StrCat(HostName(), " pid ", ProcessMark(), RankHere());
    Name filled;
    filled.bytes = text.copy(filled.text, sizeof(filled.text));
    return filled;
  }();
  return absl::string_view(name.text, name.bytes);
}

uint64_t ThisProcessNumber() {
  static const uint64_t number = [] {
    uint64_t drawn = 0;
    return FillRandom(&drawn, sizeof(drawn)).ok() ? drawn : 0;
  }();
  return number;
}

}  // namespace tcpx
