#include "net_socket/health/stall_group.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/clock.h"
#include "common/random.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

uint64_t NewNumber() {
  uint64_t number = 0;
  if (!FillRandom(&number, sizeof(number)).ok()) number = static_cast<uint64_t>(MonotonicNanos());
  return number | 1;  // 0 is nobody.
}

// Firmer causes first, then those found here, then by name, so that all choose alike. From one end a host that is gone
// looks as one that a firewall hides: the end that knows more knows better.
bool Before(const Verdict& a, const Verdict& b) {
  const auto softness = [](const Verdict& one) { return !one.hard ? 2 : one.cause == Cause::kHostGone ? 1 : 0; };
  const int a_soft = softness(a);
  const int b_soft = softness(b);
  return std::tie(a_soft, a.follows, a.culprit) < std::tie(b_soft, b.follows, b.culprit);
}

// As its peer has it.
WaitRoot RootBy(const StallMember& member) {
  WaitRoot root = member.peer_root;
  root.chain.insert(root.chain.begin(), member.there);
  if (root.chain.size() > kChainMax) root.chain.resize(kChainMax);
  return root;
}

WaitRoot RootFrom(const StallMember& member, uint64_t self) {
  const Verdict& verdict = member.verdict;
  if (verdict.follows) return RootBy(member);
  WaitRoot root;
  root.cause = verdict.cause;
  root.finder = self;
  root.culprit = verdict.culprit;
  root.evidence = verdict.evidence;
  if (verdict.culprit == member.there) root.chain.push_back(member.there);
  return root;
}

bool Ahead(const WaitRoot& a, const WaitRoot& b) { return std::tie(a.lag, a.finder) > std::tie(b.lag, b.finder); }

// Everybody waits for the next: who holds most?
WaitRoot CandidateOf(const std::vector<const StallMember*>& members, uint64_t self, const std::string& here) {
  WaitRoot own;
  own.candidate = true;
  own.finder = self;
  own.culprit = here;
  for (const StallMember* member : members) {
    own.lag += (member->sends ? -1 : 1) * static_cast<int64_t>(member->messages_done);
  }
  WaitRoot best = own;
  for (const StallMember* member : members) {
    if (!member->verdict.waits) continue;
    const WaitRoot& theirs = member->peer_root;
    // What else was found here, and is over, comes round as well, but is no candidate.
    if (theirs.candidate && theirs.finder == self) {
      own.cause = Cause::kPeerLate;
      own.evidence =
          "all wait for each other in a circle, and this rank has passed on the smallest part of what it received";
      return own;
    }
    if (theirs.candidate && Ahead(theirs, best)) best = RootBy(*member);
  }
  return best;
}

bool Same(const WaitRoot& a, const WaitRoot& b) {
  return std::tie(a.cause, a.candidate, a.finder, a.serial, a.lag, a.culprit) ==
         std::tie(b.cause, b.candidate, b.finder, b.serial, b.lag, b.culprit);
}

// What a root is made of, but for how long it has been so.
bool SameNews(const StallMember& a, const StallMember& b) {
  const auto facts = [](const Verdict& one) {
    return std::tie(one.cause, one.hard, one.waits, one.follows, one.culprit);
  };
  return (a.stalled_since_ns == 0) == (b.stalled_since_ns == 0) && facts(a.verdict) == facts(b.verdict) &&
         Same(a.peer_root, b.peer_root);
}

}  // namespace

WaitRoot RootOf(const std::vector<const StallMember*>& members, uint64_t self, const std::string& here) {
  const StallMember* best = nullptr;
  bool waits = false;
  for (const StallMember* member : members) {
    if (member->stalled_since_ns == 0) continue;
    waits = waits || member->verdict.waits;
    if (member->verdict.cause == Cause::kNone) continue;
    if (best == nullptr || Before(member->verdict, best->verdict)) best = member;
  }
  if (best != nullptr) return RootFrom(*best, self);
  return waits ? CandidateOf(members, self, here) : WaitRoot();
}

StallGroup::StallGroup() : self_(NewNumber()) {}

StallMember* StallGroup::PutInLoop(Key key, StallMember member, int64_t now_ns) {
  StallMember& place = places_[key].member;
  const bool stalled = place.stalled_since_ns != 0 || member.stalled_since_ns != 0;
  stale_ = stale_ || stalled;
  news_ = news_ || (stalled && !SameNews(place, member));
  place = std::move(member);
  Refresh(now_ns);
  return &place;
}

void StallGroup::LeaveInLoop(Key key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  const bool stalled = found->second.member.stalled_since_ns != 0;
  stale_ = stale_ || stalled;
  news_ = news_ || stalled;
  places_.erase(found);
  Refresh(MonotonicNanos());
}

void StallGroup::AskedInLoop(Key key, int64_t now_ns) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  found->second.asked_ns = now_ns;
  (void)Send(found->second, false, now_ns);
}

// All are gone through, and each comes to this at each look.
void StallGroup::Refresh(int64_t now_ns) {
  const bool due = places_.size() <= tuning::kStallFewMax ||
                   now_ns - refreshed_ns_ >= (news_ ? tuning::kStallRefreshNs : tuning::kStallNoNewsNs);
  if (!stale_ || !due) return;
  stale_ = news_ = false;
  refreshed_ns_ = now_ns;
  std::vector<const StallMember*> members;
  since_ns_ = 0;
  for (const auto& [key, place] : places_) {
    members.push_back(&place.member);
    const int64_t theirs = place.member.stalled_since_ns;
    if (theirs != 0 && (since_ns_ == 0 || theirs < since_ns_)) since_ns_ = theirs;
  }
  WaitRoot root = RootOf(members, self_, std::string(ThisProcessName()));
  if (root.finder == self_) root.serial = static_cast<uint32_t>(now_ns / kSecond);
  const bool same = Same(root, root_);
  root_ = std::move(root);
  if (same) return;
  for (const auto& [key, place] : places_) {
    if (place.asked_ns != 0 && now_ns - place.asked_ns < tuning::kStallAskedNs) (void)Send(place, false, now_ns);
  }
}

bool StallGroup::Send(const Place& place, bool asks, int64_t now_ns) {
  const StallMember& member = place.member;
  if (member.health == nullptr) return false;
  WaitNews news;
  news.asks = asks;
  news.who = ThisProcessName();
  news.posted = member.posted;
  news.sequence = member.sequence;
  if (since_ns_ != 0)
    news.stalled_ms = static_cast<uint32_t>(std::max<int64_t>((now_ns - since_ns_) / kMillisecond, 1));
  news.no_cpu_percent = no_cpu_percent_;
  news.root = root_;
  return member.health->socket().SayNow(WaitsNotice(member.id, EncodeNews(news)));
}

}  // namespace tcpx
