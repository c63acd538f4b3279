#include "net_socket/health/health_peer.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/address.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/health/health_hub.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

// Whether the network swallows what is said.
int64_t LookEveryNs(const HealthSettings& settings) {
  return std::clamp(settings.peer_timeout_ns / tuning::kHealthLooks, tuning::kLookNs, tuning::kHealthLookMaxNs);
}

}  // namespace

HealthPeer::HealthPeer(HealthHub* hub, Reactor* reactor, uint64_t tag, bool dialled, ClockNotes* notes)
    : hub_(hub),
      reactor_(reactor),
      tag_(tag),
      dialled_(dialled),
      socket_(reactor,
              [this] {
                reactor_->Post([self = shared_from_this()] {
                  if (self->socket_.state() == HealthState::kUp) self->OnEvents(0);
                });
              }),
      waits_(&socket_, dialled),
      clock_(reactor, &socket_, notes, dialled),
      waiters_(&socket_) {}

void HealthPeer::UseInLoop() {
  if (++uses_ == 1 && !dialled_) hub_->UsedInLoop(*this);
}

void HealthPeer::UnuseInLoop() {
  if (--uses_ > 0) return;
  if (!dialled_) return hub_->UsedInLoop(*this);
  const std::shared_ptr<HealthPeer> self = shared_from_this();
  if (!StaysToNotifyInLoop()) CloseInLoop();
  hub_->ForgetInLoop(this);
}

void HealthPeer::UpInLoop(OwnedFd fd, const HealthSettings& settings, Seals seals) {
  const absl::Status sealed = CheckSealed(settings.encrypts, &seals);
  if (!sealed.ok()) {  // Those that wait for it give up in time.
    TCPX_WARN("a health socket: %s", sealed.message());
    return;
  }
  const absl::Status alive = SetKeepAlive(fd.get(), settings.peer_timeout_ns);
  if (!alive.ok()) TCPX_INFO("%s; a peer host that vanishes is not noticed", std::string(alive.message()));
  const int number = fd.get();
  settings_ = settings;
  peer_ = (dialled_ ? "to " : "from ") + PeerAddress(number).value_or(SocketAddress()).ToString();
  TCPX_TRACE("health socket %s %s", LocalAddress(number).value_or(SocketAddress()).ToString(), peer_);
  const std::shared_ptr<HealthPeer> self = shared_from_this();
  redials_.HaltInLoop();
  if (!LetGoInLoop()) return;
  const bool back = socket_.state() == HealthState::kLost;
  if (!socket_.Open(std::move(fd), std::move(seals), settings.heals, settings.encrypts)) return;
  waits_.Begin();
  LaneTcpInfo info;
  if (socket_.ReadTcp(&info)) rtt_ns_ = info.rtt_us * kMicrosecond;
  redials_.arbiter().NotRefused();
  if (!reactor_->WatchInLoop(number, EPOLLIN | EPOLLRDHUP, this).ok()) EndInLoop();
  socket_.FlushInLoop();
  waiters_.NotifyInLoop();
  if (back) BackInLoop();
  clock_.BeginInLoop(std::shared_ptr<HealthClock>(self, &clock_));
  if (!settings.heals || !dialled_) return;
  reactor_->CancelTimerInLoop(look_timer_);
  look_timer_ = reactor_->RepeatInLoop(LookEveryNs(settings_), [weak = weak_from_this()] {
    const std::shared_ptr<HealthPeer> health = weak.lock();
    return health == nullptr ? Reactor::kOver : health->LookInLoop();
  });
}

// From here on nothing that comes by the old socket is acknowledged: what was, is heard.
bool HealthPeer::LetGoInLoop() {
  if (socket_.state() != HealthState::kUp) return true;
  const bool heals = socket_.heals();
  if (heals && !dialled_) socket_.Freeze();
  Poll();
  if (socket_.end().garbage) {
    EndInLoop();
    return false;
  }
  socket_.LetGo();
  if (heals) AwaitAnotherInLoop();
  return true;
}

void HealthPeer::JoinInLoop(const ConnectionId& id, Link<HealthUser> user, std::shared_ptr<HealthRedialler> redialler) {
  redials_.Join(id, std::move(redialler));
  if (!members_.Join(id, user)) UseInLoop();
  const HealthState state = socket_.state();
  if (state == HealthState::kLost) return user.With([](HealthUser* one) { (void)one->HealthLost(); });
  const HealthSocket::End end = socket_.end();
  if (state == HealthState::kUp || !end.seen || end.orderly) return;
  user.With([&end](HealthUser* one) { one->PeerLost(end.status); });
}

void HealthPeer::LeaveInLoop(const ConnectionId& id) {
  redials_.Leave(id);
  members_.Leave(id);
  UnuseInLoop();
}

void HealthPeer::OnEvents(uint32_t) {
  const std::shared_ptr<HealthPeer> self = shared_from_this();
  socket_.FlushInLoop();
  (void)HearSome();  // What is left is another event.
  if (socket_.end().seen && socket_.state() != HealthState::kLost) EndInLoop();
}

bool HealthPeer::HearSome() {
  std::vector<HealthNotice> notices;
  const bool more = socket_.Read(&notices);
  for (const HealthNotice& notice : notices) {
    if (!notice.clock.empty()) {
      clock_.Hear(notice.clock);
    } else if (!members_.Deliver(notice) && !notice.waits.empty()) {
      waits_.Hear(notice);
    }
  }
  return more;
}

void HealthPeer::Poll() {
  for (int i = 0; i < tuning::kRowsMax && HearSome(); ++i) {
  }
  socket_.StirAtEnd(true);
}

void HealthPeer::EndInLoop() {
  const bool heals = MayHealInLoop();
  socket_.Drop(heals ? HealthState::kLost : HealthState::kDown);
  heals ? LostInLoop() : ReportEndInLoop();
}

void HealthPeer::ReportEndInLoop() {
  const HealthSocket::End end = socket_.end();
  hub_->ForgetInLoop(this);
  if (end.orderly) return;
  const auto tell = [weak = weak_from_this(), how = end.status] {
    const std::shared_ptr<HealthPeer> self = weak.lock();
    if (self != nullptr) self->members_.TellAll([&how](HealthUser* user) { user->PeerLost(how); });
  };
  // Its lanes may fall a moment later: then it was the end of a process.
  if (socket_.WasReset()) {
    reactor_->AddTimerInLoop(MonotonicNanos() + tuning::kLanesFallNs, tell);
    return;
  }
  tell();
  if (end.seen && end.status.ok() && !dialled_) hub_->DiedInLoop(*this, false);
}

bool HealthPeer::MayHealInLoop() {
  const HealthSocket::End end = socket_.end();
  if (!socket_.heals() || socket_.state() != HealthState::kUp || !end.seen || end.garbage || end.orderly) return false;
  if (dialled_ ? !redials_.any() : members_.empty()) return false;
  return !end.silent || members_.HeardWithin(settings_.peer_timeout_ns);
}

void HealthPeer::AwaitAnotherInLoop() {
  lost_since_ns_ = MonotonicNanos();
  lost_in_order_ = false;
  reactor_->CancelTimerInLoop(ask_timer_);
  ask_timer_ = reactor_->RepeatDeadlineInLoop(tuning::kAskPeerNs, [weak = weak_from_this()] {
    const std::shared_ptr<HealthPeer> self = weak.lock();
    return self == nullptr || self->socket_.state() != HealthState::kLost ? Reactor::kOver : self->AskInLoop();
  });
}

void HealthPeer::LostInLoop() {
  AwaitAnotherInLoop();
  const absl::Status end = socket_.end().status;
  lost_in_order_ = end.ok();
  redials_.arbiter().Lost(0, Arbiter::Loss::kDied);
  bool known = dialled_;
  members_.TellAll([&known](HealthUser* user) { known = user->HealthLost() || known; });
  std::string more;
  if (known ? redials_.arbiter().MayLog(0, lost_since_ns_) : hub_->stranger_lines()->May(MonotonicNanos(), &more)) {
    TCPX_INFO("the health socket %s is lost and will be %s: %s%s", peer_, dialled_ ? "dialled again" : "waited for",
              end.ok() ? "it ended" : end.message(), more);
  }
  if (dialled_) RedialInLoop();
  if (lost_in_order_ && !dialled_) hub_->DiedInLoop(*this, true);
}

void HealthPeer::BackInLoop() {
  const int64_t now_ns = MonotonicNanos();
  Arbiter& arbiter = redials_.arbiter();
  arbiter.Back(0, {}, now_ns);
  bool known = dialled_;
  bool counts = true;
  members_.TellAll([&](HealthUser* user) { known = user->HealthBack(std::exchange(counts, false)) || known; });
  std::string more;
  if (known ? arbiter.MayLog(0, now_ns) : hub_->stranger_lines()->May(now_ns, &more)) {
    TCPX_INFO("the health socket %s is back%s", peer_, more);
  }
  if (known && arbiter.Warns(now_ns).lane == 0) {
    TCPX_WARN(
        "the health socket %s is lost and comes back again and again: look for a firewall or a load balancer that "
        "resets it; it is dialled ever more slowly",
        peer_);
  }
  if (notifying_ != nullptr) StopNotifyingInLoop();
}

void HealthPeer::FailInLoop(const absl::Status& end) {
  redials_.HaltInLoop();
  if (!socket_.Fail(end)) return;
  const std::shared_ptr<HealthPeer> self = shared_from_this();
  StopNotifyingInLoop();
  ReportEndInLoop();
  waiters_.DialInLoop();
}

void HealthPeer::RefusedInLoop(const HealthRedialler* redialler) {
  const std::shared_ptr<HealthPeer> self = shared_from_this();
  if (!redials_.Dials(redialler)) return;
  redials_.HaltInLoop();
  for (const ConnectionId& id : redials_.Refuse(redialler)) members_.Refuse(id);
  RedialInLoop();
}

void HealthPeer::GoneInLoop(const HealthRedialler* redialler) {
  const std::shared_ptr<HealthPeer> self = shared_from_this();
  if (redialler == nullptr || redials_.Dials(redialler)) FailInLoop(absl::OkStatus());
}

int64_t HealthPeer::AskInLoop() {
  const int64_t lost_ns = MonotonicNanos() - lost_since_ns_;
  if (uses_ == 0 && notifying_ == nullptr) {
    CloseInLoop();
    hub_->ForgetInLoop(this);
    return Reactor::kOver;
  }
  const auto fail = [this](const absl::Status& end) {
    FailInLoop(end);
    return Reactor::kOver;
  };
  if (!dialled_ && lost_ns >= tuning::kEndedNs) {
    ProcessEvidence process = members_.Lanes(lost_in_order_);
    process.lost_ns = std::min(process.lost_ns, lost_ns);
    process.rtt_ns = rtt_ns_;
    if (IsGone(process) && !hub_->AnotherIsUpInLoop(this)) return fail(absl::OkStatus());
  }
  const HealthSocket::End end = socket_.end();
  if (end.silent && !members_.HeardWithin(settings_.peer_timeout_ns)) return fail(end.status);
  const int64_t bound_ns = settings_.reconnect_timeout_ns + (dialled_ ? 0 : tuning::kDiallerGivesUpNs);
  if (lost_ns >= bound_ns && !members_.HeardWithin(tuning::kHeardNs)) {
    return fail(absl::UnavailableError(
        "the health socket to the peer was lost, and within TCPX_RECONNECT_TIMEOUT nothing has brought it back"));
  }
  return lost_ns < tuning::kNewsNs ? tuning::kAskPeerNs : tuning::kAskPeerLaterNs;
}

int64_t HealthPeer::LookInLoop() {
  LaneTcpInfo info;
  if (socket_.state() != HealthState::kUp) return Reactor::kOver;
  // One that holds nothing is probed (keepalive). The old socket stays: the first of the two that is heard is used.
  if (socket_.ReadTcp(&info) && (redials_.arbiter().Suspects(0, info, MonotonicNanos()) ||
                                 (info.held_bytes == 0 && info.probes >= tuning::kUnansweredMin))) {
    RedialInLoop();
  }
  return LookEveryNs(settings_);
}

bool HealthPeer::StaysToNotifyInLoop() {
  Poll();
  if (!socket_.has_unheard()) return false;
  if (socket_.state() == HealthState::kUp && socket_.end().seen) EndInLoop();
  if (socket_.state() != HealthState::kLost || settings_.linger_ns == 0) return false;
  notifying_ = shared_from_this();
  reactor_->HoldInLoop();
  RedialInLoop();
  const int64_t until_ns = MonotonicNanos() + std::min(settings_.linger_ns, tuning::kNotifyNs);
  reactor_->AddTimerInLoop(until_ns, [self = notifying_] { self->StopNotifyingInLoop(); });
  return true;
}

void HealthPeer::StopNotifyingInLoop() {
  const std::shared_ptr<HealthPeer> self = std::exchange(notifying_, nullptr);
  if (self == nullptr) return;
  CloseInLoop();
  reactor_->ReleaseInLoop();
}

}  // namespace tcpx
