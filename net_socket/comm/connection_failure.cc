#include "net_socket/comm/connection_failure.h"

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/status.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/failure_verdict.h"
#include "net_socket/comm/runtime.h"

namespace tcpx {

absl::Status ConnectionFailure::status() const {
  MutexLock lock(mutex_);
  return status_;
}

Trouble ConnectionFailure::TroubleOf(absl::string_view what, int lane) const {
  return {setup_, DirectionName(direction_), lane, what, end_->FlightNow()};
}

void ConnectionFailure::Fail(absl::Status status, int lane, Noise noise) {
  FailureGroup* const group = setup_->communicator->group.get();
  if (noise == Noise::kSilent && group != nullptr) group->Hush();
  if (failed()) return;
  // Who finds the end of a lane may find out why: the peer says so before it goes.
  if (noise == Noise::kWarn && setup_->health != nullptr && absl::IsUnavailable(status)) {
    setup_->health->Poll();
    if (!failed()) AwaitExplanation(*setup_, [this] { return Explained(); });
    const std::string cause = PeerParted();
    if (!cause.empty()) return FailWithPeer(cause);
    if (setup_->health->PeerVanished()) {
      status = absl::Status(status.code(), absl::StrCat(status.message(), "; ", kPeerVanished));
    }
  }
  FailFor("", std::move(status), lane, noise);
}

void ConnectionFailure::FailWithPeer(const std::string& cause) {
  const FailureGroup* const group = setup_->communicator->group.get();
  const Noise noise = group != nullptr && group->Closing(MonotonicNanos()) ? Noise::kQuiet : Noise::kWarn;
  FailFor(cause, absl::UnavailableError(absl::StrCat("the peer failed: ", cause)), kNoLane, noise);
}

void ConnectionFailure::NotePeerParted(const std::string& cause) {
  MutexLock lock(mutex_);
  peer_parted_ = cause;
}

std::string ConnectionFailure::PeerParted() const {
  MutexLock lock(mutex_);
  return peer_parted_;
}

bool ConnectionFailure::Explained() const {
  if (failed() || !PeerParted().empty()) return true;
  const FailureGroup* const group = setup_->communicator->group.get();
  if (group != nullptr && !group->cause().empty()) return true;
  MutexLock lock(mutex_);
  return !status_.ok();
}

void ConnectionFailure::FailWithCommunicator(const std::string& cause) {
  FailFor(cause, absl::UnavailableError(absl::StrCat("another connection of the communicator failed: ", cause)),
          kNoLane, Noise::kQuiet);
}

void ConnectionFailure::FailFor(std::string cause, absl::Status status, int lane, Noise noise) {
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  FailureGroup* const group = setup_->communicator->group.get();
  std::unique_lock<Mutex> telling;
  if (group != nullptr) telling = group->Telling();
  std::string what(status.message());
  if (cause.empty() && noise == Noise::kWarn) {
    what = VerdictPrefix(VerdictOfFailure(*setup_, status, lane)) + what;
  }
  if (cause.empty()) cause = CauseLine(TroubleOf(what, lane));
  const bool first = JoinFailure(&cause, &noise);
  told_ = Report(what, lane);
  // The line goes out before any call can return the error: the process may exit on it.
  if (noise == Noise::kWarn) TCPX_WARN_TO(setup_->communicator->log, "%s", told_);
  if (noise == Noise::kQuiet) TCPX_TRACE("%s", told_);
  MoveTo(ConnectionState::kFailed);
  if (telling.owns_lock()) telling.unlock();
  const bool parting = noise == Noise::kParting;
  const bool told = noise != Noise::kSilent && setup_->health != nullptr &&
                    setup_->health->Notify(setup_->connection_id, cause, parting);
  // The peer must not wait for lanes to come back.
  if ((!told || parting) && setup_->heals) setup_->health->NotifyLeft(setup_->connection_id);
  if (!told || parting) end_->TellPeer(status);
  peer_told_.store(true, std::memory_order_release);
  if (first) group->Spread(&setup_->runtime->reactor);
}

bool ConnectionFailure::JoinFailure(std::string* cause, Noise* noise) {
  FailureGroup* const group = setup_->communicator->group.get();
  if (group == nullptr) return false;
  if (*noise == Noise::kParting) group->KeepQuiet(*cause);
  if (*noise == Noise::kParting || *noise == Noise::kSilent) return false;
  const bool first = group->Claim(*cause);
  if (!first) *cause = group->cause();
  if (*noise == Noise::kWarn && (!first || group->Quiet(*cause))) *noise = Noise::kQuiet;
  return first;
}

absl::Status ConnectionFailure::Refusal() {
  const int64_t every_ns = setup_->runtime->options.stall_warn_ns;
  if (setup_->communicator->repeat_warnings && every_ns > 0) {
    const int64_t now = MonotonicNanos();
    if (told_again_ns_ == 0) told_again_ns_ = now;
    if (now - told_again_ns_ >= every_ns) {
      told_again_ns_ = now;
      TCPX_WARN_TO(setup_->communicator->log, "still failed: %s", told_);
    }
  }
  return status();
}

}  // namespace tcpx
