#include "tests/plugin/faults/faults.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

// What the kernel may say of a connection that has gone, and of a host that is short of memory.
constexpr int kErrnos[] = {ECONNRESET, EPIPE, ETIMEDOUT, EHOSTUNREACH, ENOBUFS, ENOMEM};
constexpr size_t kNetworksErrnos = 4;  // the first of them

constexpr const char* kNames[] = {"none", "short", "again", "zero", "reset", "errno"};

enum Purpose { kSendCall, kReceiveCall, kOtherCall, kLate, kLose, kDuplicate };

thread_local bool t_polling = false;
thread_local bool t_faultless = false;

// The health socket alone has it.
bool HasUserTimeout(int fd) {
  int milliseconds = 0;
  socklen_t length = sizeof(milliseconds);
  return getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &length) == 0 && milliseconds != 0;
}

}  // namespace

Faults& Faults::Get() {
  static Faults* const faults = new Faults;
  return *faults;
}

void Faults::Begin(uint64_t seed, const FaultRates& rates) {
  std::lock_guard<std::mutex> lock(mutex_);
  seed_ = seed;
  rates_ = rates;
  calls_.clear();
  storms_.clear();
  violation_.clear();
  fatal_.store(0);
  lost_.store(0);
  connecting_.store(false);
  only_deaths_of_lanes_.store(rates.deaths_of_lanes);
  on_.store(true);
}

uint64_t Faults::Random(int fd, int purpose) {
  const uint64_t call = calls_[{fd, purpose}]++;
  return Rng(seed_ * 1000003 + static_cast<uint64_t>(fd) * 8191 + static_cast<uint64_t>(purpose) * 131 + (call << 32))
      .Next();
}

Fault Faults::Next(int fd, FlowDirection direction, bool may_wait) {
  if (!on_.load()) return Fault();
  std::lock_guard<std::mutex> lock(mutex_);
  const Fault fault = Choose(fd, direction, may_wait);
  const bool fatal =
      fault.kind == Fault::Kind::kZero || fault.kind == Fault::Kind::kReset || fault.kind == Fault::Kind::kErrno;
  if (fatal) fatal_.fetch_add(1);
  if (fault.kind != Fault::Kind::kNone) ++tally_[kNames[static_cast<int>(fault.kind)]];
  return fault;
}

Fault Faults::Choose(int fd, FlowDirection direction, bool may_wait) {
  const int purpose = static_cast<int>(direction);
  Rng rng(Random(fd, purpose));
  uint64_t& storm = storms_[{fd, purpose}];
  if (may_wait && storm > 0) {
    --storm;
    return {Fault::Kind::kAgain, 0, EAGAIN};
  }
  if (direction == FlowDirection::kOther) return Fault();
  const Fault death = ChooseDeath(fd, direction, &rng);
  if (death.kind != Fault::Kind::kNone) return death;
  if (may_wait && OneIn(rates_.again, rng.Next())) {
    storm = rng.Between(0, rates_.storm_max);
    return {Fault::Kind::kAgain, 0, EAGAIN};
  }
  // Where lanes heal, they are set up at any time.
  const bool connecting = connecting_.load() || (rates_.deaths_of_lanes && !may_wait);
  const bool whole = connecting && direction == FlowDirection::kSend;
  if (!whole && OneIn(rates_.shorten, rng.Next())) {
    return {Fault::Kind::kShort, static_cast<size_t>(rng.Between(1, rates_.short_bytes_max)), 0};
  }
  return Fault();
}

Fault Faults::ChooseDeath(int fd, FlowDirection direction, Rng* rng) const {
  Fault death;
  if (OneIn(rates_.reset, rng->Next())) {
    death = {Fault::Kind::kReset, 0, 0};
  } else if (OneIn(rates_.err, rng->Next())) {
    const size_t errnos = rates_.deaths_of_lanes ? kNetworksErrnos : std::size(kErrnos);
    death = {Fault::Kind::kErrno, 0, kErrnos[rng->Next() % errnos]};
  } else if (direction == FlowDirection::kReceive && OneIn(rates_.zero, rng->Next())) {
    death = {Fault::Kind::kZero, 0, 0};
  }
  const bool spared = death.kind != Fault::Kind::kNone && rates_.deaths_of_lanes && HasUserTimeout(fd);
  return spared ? Fault() : death;
}

uint64_t Faults::Late(int fd) {
  if (!on_.load()) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  Rng rng(Random(fd, kLate));
  if (!OneIn(rates_.late, rng.Next())) return 0;
  ++tally_["late"];
  return rng.Between(1, rates_.late_rounds_max);
}

bool Faults::Lose(int fd) {
  if (!on_.load()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!OneIn(rates_.lost, Random(fd, kLose))) return false;
  lost_.fetch_add(1);
  ++tally_["lost"];
  return true;
}

bool Faults::Duplicate(int fd) {
  if (!on_.load()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!OneIn(rates_.duplicate, Random(fd, kDuplicate))) return false;
  ++tally_["duplicate"];
  return true;
}

std::string Faults::Tally() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (const auto& [name, count] : tally_) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

void Faults::Violation(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (violation_.empty()) violation_ = text;
}

std::string Faults::violation() {
  std::lock_guard<std::mutex> lock(mutex_);
  return violation_;
}

void SetPolling(bool polling) { t_polling = polling; }
bool Polling() { return t_polling; }

Faultless::Faultless() : before_(t_faultless) { t_faultless = true; }
Faultless::~Faultless() { t_faultless = before_; }
bool Faultless::InForce() { return t_faultless; }

// A bare system call: the thread sanitizer takes connect() for the making of a new descriptor.
void ResetSocket(int fd) {
  if (Faults::Get().only_deaths_of_lanes()) {
    const Faultless faultless;
    if (!DestroySocket(fd)) (void)shutdown(fd, SHUT_RDWR);
    return;
  }
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)syscall(SYS_connect, fd, &none, sizeof(none));
}

}  // namespace tcpx
