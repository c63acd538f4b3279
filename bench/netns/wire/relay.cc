#include "bench/netns/wire/relay.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/clock.h"

namespace tcpx {
namespace wire {
namespace {

// For one turn: so no direction lets the other wait for long. A frame that is read may become many pieces.
constexpr int kReadsPerTurn = 4;
constexpr int kWritesPerTurn = 128;
// A queue that was never seen empty may have been so between two looks: what its link could have sent in this time is
// made up for, not more.
constexpr int64_t kCatchUpNs = kMillisecond;
constexpr int kNiceness = -20;
constexpr int64_t kControlEveryNs = kMillisecond;

// A network does not wait for those who use it, and they spin. The first that is allowed counts; without any of them
// frames are late, which the counters tell.
void GoFirst() {
  sched_param lowest = {};
  lowest.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_RR, &lowest) != 0) setpriority(PRIO_PROCESS, 0, kNiceness);
}

bool Readable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

Relay::Relay(const Options& options)
    : options_(options),
      network_(static_cast<int>(options.ends.size()), options.settings, options.seed),
      empty_at_(options.ends.size(), 0) {}

absl::Status Relay::Open() {
  for (const End& end : options_.ends) {
    absl::StatusOr<Tun> tun = Tun::Open(end.netns, end.device);
    if (!tun.ok()) return tun.status();
    tuns_.push_back(*std::move(tun));
  }
  // Else ppoll sleeps 50 us longer than asked. Where it can't be set, that is what happens.
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  GoFirst();
  return options_.control.empty() ? absl::OkStatus() : control_.Listen(options_.control);
}

int Relay::EndOf(const Address& address) const {
  for (size_t end = 0; end < options_.ends.size(); ++end) {
    const std::vector<Address>& mine = options_.ends[end].addresses;
    if (std::find(mine.begin(), mine.end(), address) != mine.end()) return static_cast<int>(end);
  }
  return -1;
}

bool Relay::SendDue() {
  Departure departure;
  int sent = 0;
  int64_t now = MonotonicNanos();
  for (; sent < kWritesPerTurn && network_.Depart(now, &departure); now = MonotonicNanos()) {
    ++sent;
    ++frames_;
    behind_100us_ += now - departure.due > 100 * kMicrosecond;
    behind_1ms_ += now - departure.due > kMillisecond;
    if (!tuns_[static_cast<size_t>(departure.to)].Write(departure.piece)) ++refused_;
  }
  return sent > 0;
}

bool Relay::ReadEnd(size_t end) {
  Frame frame;
  for (int reads = 0; reads < kReadsPerTurn; ++reads) {
    const int64_t now = MonotonicNanos();
    if (!tuns_[end].Read(&pool_, &frame)) {
      empty_at_[end] = now;
      return reads > 0;
    }
    const std::optional<PacketInfo> info = ParsePacket(frame.data.get(), frame.bytes);
    const int to = info ? EndOf(info->flow.destination) : -1;
    if (to < 0) {
      ++unknown_;
      continue;
    }
    network_.Arrive(to, frame, *info, std::max(empty_at_[end], now - kCatchUpNs), now);
  }
  return true;
}

void Relay::Run(int stop_fd) {
  int64_t control_at = 0;
  for (;;) {
    bool busy = SendDue();
    for (size_t end = 0; end < tuns_.size(); ++end) busy = ReadEnd(end) || busy;
    if (!busy) Wait(stop_fd);
    const int64_t now = MonotonicNanos();
    if (now < control_at) continue;
    control_at = now + kControlEveryNs;
    control_.Serve([this](absl::string_view line) { return Answer(line); });
    if (Readable(stop_fd)) return;
  }
}

void Relay::Wait(int stop_fd) {
  const int64_t due = network_.NextDue();
  const int64_t sleep_ns = due == std::numeric_limits<int64_t>::max() ? -1 : due - MonotonicNanos() - options_.spin_ns;
  if (due != std::numeric_limits<int64_t>::max() && sleep_ns <= 0) return;
  std::vector<pollfd> entries = {{stop_fd, POLLIN, 0}};
  for (const Tun& tun : tuns_) entries.push_back({tun.fd(), POLLIN, 0});
  for (int fd : control_.fds()) entries.push_back({fd, POLLIN, 0});
  const timespec most = {static_cast<time_t>(sleep_ns / kSecond), static_cast<long>(sleep_ns % kSecond)};
  ppoll(entries.data(), entries.size(), sleep_ns < 0 ? nullptr : &most, nullptr);
}

std::string Relay::Answer(absl::string_view line) {
  if (line == "stats") return Stats();
  Settings settings = network_.settings();
  if (absl::Status status = ApplyLine(line, &settings); !status.ok()) {
    return absl::StrCat("error: ", status.message(), "\n");
  }
  network_.Change(settings);
  return "ok\n";
}

std::string Relay::Stats() const {
  std::string text;
  for (size_t end = 0; end < options_.ends.size(); ++end) {
    for (size_t path = 0; path < network_.paths(); ++path) {
      const Counters& c = network_.counters(static_cast<int>(end), path);
      absl::StrAppend(&text, "to=", options_.ends[end].netns, " path=", path, " flows=", c.flows,
                      " segments=", c.segments, " bytes=", c.bytes, " lost=", c.lost);
      absl::StrAppend(&text, " late=", c.late, " full=", c.full, " cut=", c.cut, "\n");
    }
  }
  absl::StrAppend(&text, "frames=", frames_, " behind_100us=", behind_100us_, " behind_1ms=", behind_1ms_,
                  " unknown=", unknown_, " refused=", refused_, "\n");
  return text;
}

}  // namespace wire
}  // namespace tcpx
