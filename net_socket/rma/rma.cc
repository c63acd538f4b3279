#include "net_socket/rma/rma.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/clock.h"
#include "common/thread.h"

namespace tcpx {
namespace {

// From one look at the groups that NCCL does not call to the next: while they move, and once they rest.
constexpr unsigned kTickUs = 1000;
constexpr unsigned kTickMaxUs = 8000;
// At groups whose copies of GPU memory may be under way, which take less, and of which nothing else tells; until
// nothing has moved for so long. Guesses.
constexpr unsigned kCopyTickUs = 50;
constexpr int64_t kCopiesNs = kSecond;

}  // namespace

bool Rma::Unused() {
  MutexLock lock(mutex_);
  return inside_ == 0;
}

void Rma::EndThread() {
  MutexLock life(life_);
  over_ = true;
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  if (groups_.empty()) groups_ = {};  // Nothing is left of it at an unload.
}

void Rma::Run() {
  pthread_setname_np(pthread_self(), "tcpx-rma");
  unsigned rest_us = kTickUs;
  int64_t moved_ns = 0;
  int64_t next_ns = 0;  // when all are looked at
  for (unsigned nap_us = kTickUs; !ends_; usleep(nap_us)) {
    const int64_t now_ns = MonotonicNanos();
    const bool all = now_ns >= next_ns;
    bool moved = false;
    const bool copies = Tick(all, &moved);
    if (all || moved) rest_us = moved ? kTickUs : std::min(2 * rest_us, kTickMaxUs);
    const int64_t rested_ns = now_ns + rest_us * kMicrosecond;
    next_ns = all ? rested_ns : std::min(next_ns, rested_ns);
    if (moved || !copies) moved_ns = now_ns;
    const bool often = copies && now_ns - moved_ns < kCopiesNs;
    nap_us = often ? kCopyTickUs : static_cast<unsigned>((next_ns - now_ns) / kMicrosecond);
  }
}

bool Rma::Tick(bool all, bool* moved) {
  MutexLock lock(mutex_);
  bool copies = false;
  for (auto& [group, copied] : groups_) {
    if (all || copied) copied = group->Tick(moved);
    copies = copies || copied;
  }
  return copies;
}

absl::Status Rma::Enter(RmaGroup* group) {
  MutexLock life(life_);
  {
    MutexLock lock(mutex_);
    groups_[group] = false;
  }
  if (thread_.joinable()) return absl::OkStatus();
  if (over_) return LibraryEnds();
  ends_ = false;
  auto thread = StartThread("the thread of one-sided transfers", [this] { Run(); });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  return absl::OkStatus();
}

void Rma::Leave(RmaGroup* group) {
  MutexLock life(life_);
  {
    MutexLock lock(mutex_);
    groups_.erase(group);
    if (!groups_.empty() || !thread_.joinable()) return;
    ends_ = true;
  }
  thread_.join();
}

absl::StatusOr<RmaListen*> Rma::Listen(Context* context, int device, void* handle) {
  auto listen = net_->Listen(context, device, handle);
  if (!listen.ok()) return listen.status();
  return new RmaListen{context, device, *listen};
}

void Rma::CloseListen(RmaListen* listen) {
  net_->CloseListen(listen->listen);
  delete listen;
}

// Counted before the plugin is asked for anything: an exit leaves it to this group, or the plugin refuses.
absl::StatusOr<RmaGroup*> Rma::Connect(RmaListen* listen, absl::Span<void* const> handles, uint32_t rank) {
  Count(1);
  auto group = MakeGroup(listen, handles, rank);
  if (!group.ok()) Count(-1);
  return group;
}

absl::StatusOr<RmaGroup*> Rma::MakeGroup(RmaListen* listen, absl::Span<void* const> handles, uint32_t rank) {
  if (listen->listen == nullptr) return absl::FailedPreconditionError("connect: the listen comm has a group");
  const std::optional<RmaLimits> limits = offer_();
  if (!limits.has_value()) return absl::FailedPreconditionError("connect: there are no one-sided transfers here");
  auto group = std::make_unique<RmaGroup>(net_, *limits, listen, handles, rank);
  absl::Status status = Enter(group.get());
  if (status.ok()) status = group->Reach(over_);
  if (status.ok()) return group.release();
  End(std::move(group));
  return status;
}

void Rma::Close(RmaGroup* group) {
  End(std::unique_ptr<RmaGroup>(group));
  Count(-1);
}

void Rma::End(std::unique_ptr<RmaGroup> group) {
  Leave(group.get());
  group->Close();
}

void Rma::Count(int more) {
  MutexLock lock(mutex_);
  inside_ += more;
}

}  // namespace tcpx
