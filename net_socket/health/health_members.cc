#include "net_socket/health/health_members.h"

#include <algorithm>
#include <utility>

namespace tcpx {
namespace {

// Kept for a connection that is expected: an honest peer says that it has parted or failed, and that it is closed.
constexpr size_t kEarlyNoticesMax = 2;

void Pass(const Link<HealthUser>& member, const HealthNotice& notice) {
  member.With([&notice](HealthUser* user) {
    if (!notice.waits.empty()) {
      user->PeerSaysWaits(notice.waits);
    } else if (notice.silent >= 0) {
      user->PeerIsUnheard(notice.silent);
    } else if (notice.left) {
      user->PeerLeft(notice.taken);
    } else {
      user->PeerFailed(notice.cause, notice.parting);
    }
  });
}

}  // namespace

bool HealthMembers::Join(const ConnectionId& id, Link<HealthUser> user) {
  std::vector<HealthNotice> notices;
  bool expected = false;
  {
    MutexLock lock(mutex_);
    expected = members_.contains(id);
    Member& member = members_[id];
    member.user = user;
    notices.swap(member.notices);
  }
  for (const HealthNotice& notice : notices) Pass(user, notice);
  return expected;
}

void HealthMembers::Refuse(const ConnectionId& id) {
  Link<HealthUser> refused;
  {
    MutexLock lock(mutex_);
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    refused = std::exchange(found->second.user, Tie().To<HealthUser>(nullptr));
  }
  refused.With([](HealthUser* user) { user->PeerLost(absl::OkStatus()); });
}

bool HealthMembers::Deliver(const HealthNotice& notice) {
  Link<HealthUser> user;
  {
    MutexLock lock(mutex_);
    const auto found = members_.find(notice.connection);
    if (found == members_.end()) return false;
    Member& member = found->second;
    user = member.user;
    if (!user.any() && notice.waits.empty() && member.notices.size() < kEarlyNoticesMax)
      member.notices.push_back(notice);
  }
  Pass(user, notice);
  return user.any();
}

std::vector<Link<HealthUser>> HealthMembers::Users() {
  std::vector<Link<HealthUser>> users;
  MutexLock lock(mutex_);
  for (auto& [id, member] : members_) {
    if (member.user.any()) users.push_back(member.user);
  }
  return users;
}

ProcessEvidence HealthMembers::Lanes(bool in_order) {
  ProcessEvidence process;
  TellAll([&](HealthUser* user) {
    bool ended = in_order;
    const int64_t gone_ns = user->LanesGoneNs(&ended);
    process.up = process.up || user->AnyLaneUp(true);
    if (gone_ns == 0 || !ended) return;
    process.in_order = true;
    process.lost_ns = std::max(process.lost_ns, gone_ns);
  });
  return process;
}

}  // namespace tcpx
