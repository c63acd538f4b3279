#include "net_socket/nic/lost_paths.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/interfaces.h"
#include "common/log.h"
#include "net_socket/nic/tuning.h"

namespace tcpx {
namespace {

bool Serves(const std::vector<Interface>& all, const Nic& nic) {
  return std::any_of(all.begin(), all.end(), [&nic](const Interface& one) {
    return one.name == nic.interface.name && one.runs() && one.address.SameHostAddress(nic.interface.address);
  });
}

std::string KeyOf(const Nic& nic) { return absl::StrCat(nic.interface.name, " ", nic.interface.address.HostString()); }
std::string KeyOf(const LanePath& path) { return absl::StrCat(KeyOf(*path.nic), " ", path.peer.ToString()); }

}  // namespace

void LostPaths::JoinInLoop(User* user, const std::vector<const Nic*>& nics) {
  users_.push_back(user);
  bool added = false;
  for (const Nic* nic : nics) {
    Watched& watched = nics_[KeyOf(*nic)];
    added = added || watched.nic == nullptr;
    watched.nic = nic;
  }
  if (links_.fd() < 0) {
    absl::Status opened = links_.Open();
    if (opened.ok()) opened = reactor_->WatchInLoop(links_.fd(), EPOLLIN, this);
    if (!opened.ok()) links_.Close();
    if (!opened.ok() && !std::exchange(logged_, true)) {
      TCPX_INFO("the kernel does not report changes of interfaces, so lanes notice them by silence: %s",
                std::string(opened.message()));
    }
  }
  // A lane that would never hear that the path is back must not take it to be out.
  if (added && links_.fd() >= 0) LookInLoop();
}

void LostPaths::LeaveInLoop(User* user) {
  users_.erase(std::remove(users_.begin(), users_.end(), user), users_.end());
  for (auto& [key, lost] : lost_) {
    lost.waiting.erase(std::remove(lost.waiting.begin(), lost.waiting.end(), user), lost.waiting.end());
  }
  if (!users_.empty()) return;
  for (auto& [key, lost] : lost_) reactor_->CancelTimerInLoop(lost.timer);
  lost_.clear();
  nics_.clear();
  if (links_.fd() >= 0) reactor_->UnwatchInLoop(links_.fd());
  links_.Close();
}

void LostPaths::WaitInLoop(User* user, const LanePath& path) {
  const std::string key = KeyOf(path);
  Lost& lost = lost_[key];
  if (std::find(lost.waiting.begin(), lost.waiting.end(), user) != lost.waiting.end()) return;
  if (lost.waiting.empty()) {
    const int64_t now_ns = MonotonicNanos();
    const bool again = lost.back_ns != 0 && now_ns - lost.back_ns < tuning::kProvenNs;
    lost.path = path;
    lost.since_ns = now_ns;
    lost.pause_ns = again ? std::min(2 * lost.pause_ns, tuning::kAskPathRarelyNs) : tuning::kAskPathNs;
    AskSoonInLoop(key, &lost, lost.pause_ns);
  }
  lost.waiting.push_back(user);
}

void LostPaths::AskSoonInLoop(const std::string& key, Lost* lost, int64_t after_ns) {
  reactor_->CancelTimerInLoop(lost->timer);
  lost->timer = reactor_->RepeatInLoop(after_ns, [this, key] { return AskInLoop(key); });
}

// One user after the other: the one that is asked first may have no lane to spare.
int64_t LostPaths::AskInLoop(const std::string& key) {
  Lost& lost = lost_[key];
  if (!OutInLoop(*lost.path.nic)) {
    for (size_t left = lost.waiting.size(); left > 0; --left) {
      std::rotate(lost.waiting.begin(), lost.waiting.begin() + 1, lost.waiting.end());
      if (lost.waiting.back()->TryPathInLoop(lost.path)) break;
      lost.waiting.pop_back();
    }
  }
  if (lost.waiting.empty()) return Reactor::kOver;
  const bool long_out = MonotonicNanos() - lost.since_ns > tuning::kLongLostNs;
  return long_out ? tuning::kAskPathRarelyNs : lost.pause_ns;
}

void LostPaths::FoundInLoop(const LanePath& path) {
  const auto found = lost_.find(KeyOf(path));
  if (found == lost_.end() || found->second.waiting.empty()) return;
  Lost& lost = found->second;
  lost.back_ns = MonotonicNanos();
  reactor_->CancelTimerInLoop(lost.timer);
  for (User* user : std::exchange(lost.waiting, {})) user->PathServesInLoop(path);
}

bool LostPaths::OutInLoop(const Nic& nic) const {
  const auto found = nics_.find(KeyOf(nic));
  return found != nics_.end() && found->second.out;
}

void LostPaths::OnEvents(uint32_t) {
  std::vector<LinkNews> news;
  bool concerned = !links_.Read(&news);
  for (const auto& [key, watched] : nics_) {
    const Interface& own = watched.nic->interface;
    for (const LinkNews& one : news) {
      concerned |= one.name == own.name || (one.address.valid() && one.address.SameHostAddress(own.address));
    }
  }
  if (concerned) LookInLoop();
}

void LostPaths::LookInLoop() {
  const auto all = SystemInterfaces();
  if (!all.ok()) return;
  bool changed = false;
  for (auto& [key, watched] : nics_) {
    const bool out = !Serves(*all, *watched.nic);
    if (out == watched.out) continue;
    watched.out = out;
    changed = true;
    TCPX_INFO("%s (%s) %s", watched.nic->interface.name, watched.nic->interface.address.HostString(),
              out ? "is out: no carrier, or its address is gone" : "is back");
    for (auto& [path_key, lost] : lost_) {
      if (!out && !lost.waiting.empty() && KeyOf(*lost.path.nic) == key) AskSoonInLoop(path_key, &lost, 0);
    }
  }
  if (!changed) return;
  for (User* user : std::vector<User*>(users_)) user->NicsChangedInLoop();
}

}  // namespace tcpx
