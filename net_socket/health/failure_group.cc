#include "net_socket/health/failure_group.h"

#include <utility>

#include "common/log.h"

namespace tcpx {

void FailureGroup::JoinInLoop(Link<Member> member) {
  const std::string failed = cause();
  if (!failed.empty()) member.With([&failed](Member* one) { one->ContextFailed(failed); });
  members_.insert(std::move(member));
}

bool FailureGroup::Claim(const std::string& cause) {
  MutexLock lock(mutex_);
  if (!cause_.empty()) return false;
  cause_ = cause;
  claimed_.store(true, std::memory_order_release);
  return true;
}

void FailureGroup::Spread(Reactor* reactor) {
  reactor->Post([self = shared_from_this()] {
    const std::string why = self->cause();
    if (self->members_.size() > 1) {
      TCPX_INFO("all %d connections of the communicator end (TCPX_SPREAD_ERRORS): %s", self->members_.size(), why);
    }
    for (const Link<Member>& member : self->members_) {
      member.With([&why](Member* one) { one->ContextFailed(why); });
    }
  });
}

}  // namespace tcpx
