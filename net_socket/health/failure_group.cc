#include "net_socket/health/failure_group.h"

#include <utility>

#include "common/log.h"

namespace tcpx {

void FailureGroup::JoinInLoop(std::shared_ptr<CommLink> link) {
  const std::string failed = cause();
  if (!failed.empty()) link->With([&failed](Watched* comm) { comm->ContextFailed(failed); });
  members_.insert(std::move(link));
}

void FailureGroup::LeaveInLoop(const std::shared_ptr<CommLink>& link) { members_.erase(link); }

bool FailureGroup::Claim(const std::string& cause) {
  MutexLock lock(mutex_);
  if (!cause_.empty()) return false;
  cause_ = cause;
  return true;
}

void FailureGroup::Spread(Reactor* reactor) {
  reactor->Post([self = shared_from_this()] { self->SpreadInLoop(); });
}

std::string FailureGroup::cause() const {
  MutexLock lock(mutex_);
  return cause_;
}

void FailureGroup::Hush() {
  MutexLock lock(mutex_);
  hushed_ = true;
}

void FailureGroup::KeepQuiet(const std::string& cause) {
  MutexLock lock(mutex_);
  quiet_.insert(cause);
}

bool FailureGroup::Quiet(const std::string& cause) const {
  MutexLock lock(mutex_);
  return hushed_ || quiet_.contains(cause);
}

void FailureGroup::SpreadInLoop() {
  const std::string why = cause();
  if (members_.size() > 1) {
    TCPX_INFO("all %d connections of the communicator end (TCPX_SPREAD_ERRORS): %s", members_.size(), why);
  }
  for (const auto& link : members_) {
    link->With([&why](Watched* comm) { comm->ContextFailed(why); });
  }
}

}  // namespace tcpx
