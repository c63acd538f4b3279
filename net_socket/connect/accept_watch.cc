#include "net_socket/connect/accept_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/counted.h"

namespace tcpx {

constexpr char kAdvice[] =
    "Does a firewall, or a NAT, keep TCP from there? TCPX_PORT_RANGE chooses the ports, NCCL_SOCKET_IFNAME the "
    "interfaces";

absl::Status AcceptWatch::Failure(AcceptWait* wait) {
  MutexLock lock(wait->mutex);
  return wait->failure.empty() ? absl::OkStatus() : absl::UnavailableError(wait->failure);
}

void AcceptWatch::Waits(const std::shared_ptr<AcceptWait>& wait) {
  wait->asked_ns.store(MonotonicNanos(), std::memory_order_relaxed);
  if (wait->watched.load(std::memory_order_relaxed) || wait->watched.exchange(true)) return;
  reactor_->Post([this, wait] {
    if (closed_) return;
    watched_.insert(wait);
    const auto look = [this, one = wait.get()] { return LookInLoop(one); };
    wait->timer = reactor_->RepeatDeadlineInLoop(LookAfterNs(*wait), look);
  });
}

int64_t AcceptWatch::LookAfterNs(const AcceptWait& wait) const {
  const int64_t since_ns = MonotonicNanos() - wait.progress_ns;
  return since_ns < bounds_.no_progress_ns ? bounds_.no_progress_ns - since_ns : bounds_.no_progress_ns;
}

void AcceptWatch::UnwatchInLoop(AcceptWait* wait) {
  auto found = watched_.find(wait);
  if (found == watched_.end()) return;
  reactor_->CancelTimerInLoop(wait->timer);
  wait->watched.store(false);
  watched_.erase(found);  // `wait` may be gone now.
}

void AcceptWatch::CameInLoop(AcceptWait* wait, const SocketAddress& from, bool whole) {
  wait->progress_ns = MonotonicNanos();
  wait->latest = from;
  if (whole) {
    wait->incomplete_ns = 0;
  } else if (wait->incomplete_ns == 0) {
    wait->incomplete_ns = wait->progress_ns;
  }
}

void AcceptWatch::DiedInLoop(AcceptWait* wait, const SocketAddress& from) {
  GiveUpInLoop(wait, absl::StrFormat("accept on %s: all lanes from %s have come, and their dialler has died before it "
                                     "said that it has every answer: killed or crashed?",
                                     wait->where, from.ToString()));
}

void AcceptWatch::CloseInLoop() {
  closed_ = true;
  while (!watched_.empty()) UnwatchInLoop(watched_.begin()->get());
}

int64_t AcceptWatch::LookInLoop(AcceptWait* wait) {
  const int64_t now = MonotonicNanos();
  const int64_t asked_ns = wait->asked_ns.load(std::memory_order_relaxed);
  // Nobody waits: found, closed, or the application has something else to do.
  bool over = asked_ns == 0 || now - asked_ns >= bounds_.no_progress_ns;
  const FailureGroup* const group = wait->communicator->group.get();
  over = over || (group != nullptr && !group->cause().empty());  // accept says so.
  if (over) UnwatchInLoop(wait);
  const std::string hopeless = over ? "" : WhyHopelessInLoop(wait);
  if (!hopeless.empty()) GiveUpInLoop(wait, hopeless);
  if (over || !hopeless.empty()) return Reactor::kOver;  // `wait` may be gone.
  if (now - wait->progress_ns >= bounds_.no_progress_ns) {
    // What is there now is news, though it was said that nothing was.
    const bool some = partial_(*wait).has_value() || wait->incomplete_ns != 0;
    const char* const there = wait->lost_ns != 0 ? "lost" : some ? "some" : "none";
    log_.SlowInLoop(*wait->communicator, absl::StrFormat("accept %s %s", wait->where, there), DescribeInLoop(*wait));
  }
  return LookAfterNs(*wait);
}

bool AcceptWatch::LostInLoop(const AcceptWait& wait) {
  const int64_t now = MonotonicNanos();
  if (addresses_ns_ == 0 || now - addresses_ns_ >= bounds_.no_progress_ns / 2) {
    addresses_ = find_addresses_();
    addresses_ns_ = now;
  }
  const auto mine = [this](const SocketAddress& address) {
    return std::any_of(addresses_.begin(), addresses_.end(),
                       [&](const SocketAddress& each) { return each.SameHostAddress(address); });
  };
  // The kernel may tell nothing at all.
  return !addresses_.empty() && std::none_of(wait.addresses.begin(), wait.addresses.end(), mine);
}

std::string AcceptWatch::WhyHopelessInLoop(AcceptWait* wait) {
  const int64_t now = MonotonicNanos();
  if (!LostInLoop(*wait)) {
    wait->lost_ns = 0;
  } else if (wait->lost_ns == 0) {
    wait->lost_ns = now;
  }
  const bool lost = wait->lost_ns != 0 && now - wait->lost_ns >= bounds_.lost_ns;
  const bool incomplete = wait->incomplete_ns != 0 && now - wait->incomplete_ns >= bounds_.incomplete_ns;
  if (lost) return absl::StrFormat("%s Given up after %d s", DescribeInLoop(*wait), (now - wait->lost_ns) / kSecond);
  if (!incomplete) return "";
  const std::optional<Partial> partial = partial_(*wait);
  const char* const missing = partial.has_value() && partial->whole
                                  ? "but their dialler never said that it has every answer"
                                  : "but never all of a connection";
  return absl::StrFormat("accept on %s: lanes have come, the latest from %s, %s: given up after %d s. %s", wait->where,
                         wait->latest.ToString(), missing, (now - wait->incomplete_ns) / kSecond, kAdvice);
}

std::string AcceptWatch::DescribeInLoop(const AcceptWait& wait) const {
  std::string text = "accept on " + wait.where + ": ";
  if (wait.lost_ns != 0) {
    return text + "this host has lost the address, so that no peer can come: was the interface set up anew?";
  }
  const std::string seconds = absl::StrFormat("%.3g s", static_cast<double>(bounds_.no_progress_ns) / kSecond);
  const std::optional<Partial> partial = partial_(wait);
  const std::string from = (partial.has_value() ? partial->peer : wait.latest).ToString();
  if (!partial.has_value() && wait.incomplete_ns == 0) {
    return text + "no peer has come for " + seconds + ". It may be late only. " + kAdvice;
  }
  if (!partial.has_value()) {
    absl::StrAppend(&text, "lanes from ", from, " have come, never all of a connection, and no more for ", seconds);
  } else if (partial->present < partial->lanes) {
    absl::StrAppend(&text, partial->present, " of ", Counted(static_cast<int64_t>(partial->lanes), "lane"), " from ",
                    from, " have come, and no more for ", seconds);
  } else {
    text += partial->lanes == 1 ? absl::StrFormat("the only lane from %s has come", from)
                                : absl::StrFormat("all %d lanes from %s have come", partial->lanes, from);
    if (partial->whole) {
      return absl::StrCat(text, ", and the dialler has not said for ", seconds, " that it has every answer. Is its ",
                          "process stopped, or does something keep packets back?");
    }
    absl::StrAppend(&text, ", and no health socket, for ", seconds);
  }
  return absl::StrCat(text, ". ", kAdvice);
}

void AcceptWatch::GiveUpInLoop(AcceptWait* wait, const std::string& why) {
  log_.FailedInLoop(*wait->communicator, why);
  {
    MutexLock lock(wait->mutex);
    wait->failure = why;
  }
  UnwatchInLoop(wait);
}

}  // namespace tcpx
