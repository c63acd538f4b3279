#include "net_socket/connect/dial_lane.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/dcheck.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/connect/own_address.h"
#include "net_socket/connect/tuning.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {
namespace {

constexpr char kNoHello[] = "connected, but the peer does not answer the hello";

// Before the n-th try.
int64_t PauseNs(const DialSetup& dialling, int tries) {
  const int64_t sleep_ns = dialling.runtime->options.retry_sleep_ns;
  if (!dialling.tries_on) return tries * sleep_ns;
  return std::min(tuning::kPauseMinNs + (tries - 1) * sleep_ns, tuning::kPauseMaxNs);
}

const char* FamilyText(const SocketAddress& address) { return address.family() == AF_INET ? "IPv4" : "IPv6"; }

}  // namespace

void DialLane::MoveTo(DialStep to) {
  TCPX_DCHECK(MayMove(step_, to));
  step_ = to;
}

void DialLane::SetDeadline(int64_t after_ns) {
  reactor().CancelTimerInLoop(timer_);
  timer_ = reactor().AddDeadlineInLoop(after_ns, [this] {
    if (step_ == DialStep::kHello) {
      Retry(absl::UnavailableError(kNoHello));
    } else {
      NextWay(FailureOf(FailureKind::kSilence, "connect: timed out"));
    }
  });
}

void DialLane::DialInLoop() {
  PathFacts facts = dialling_->request.path;
  facts.kind = index_ > 0 ? LaneKind::kBulk : LaneKind::kFirst;
  ways_.Begin(path_, facts);
  TryWay();
}

void DialLane::DialAt(int64_t at_ns) {
  timer_ = reactor().AddTimerInLoop(at_ns, [this] {
    const int64_t again_ns = owner_->TakeDialTurn();
    again_ns == 0 ? DialInLoop() : DialAt(again_ns);
  });
}

void DialLane::TryWay() {
  MoveTo(DialStep::kDialling);
  auto fd = ways_.Open();
  if (!fd.ok()) return NextWay(fd.status());
  fd_ = *std::move(fd);
  const absl::Status watched = reactor().WatchInLoop(fd_.get(), EPOLLOUT, this);
  if (!watched.ok()) return NextWay(watched);
  SetDeadline(dialling_->tries_on ? tuning::kWayNs
                                  : ways_.PatienceNs(options().hello_timeout_ns, turned_, OtherAddress() != nullptr));
}

void DialLane::NextWay(const absl::Status& why) {
  if (!ways_.no_route()) owner_->NotRefused();
  if (absl::IsUnavailable(why) && ways_.Next()) {
    Halt();
    TryWay();
  } else if (!dialling_->tries_on && ways_.no_route() && OtherAddress() == nullptr &&
             (!turned_ || first_had_no_route_)) {
    // Waiting brings no route: said at once, as NCCL's sockets do.
    Halt();
    if (!Detour(why)) GiveUp(why);
  } else {
    Retry(why);
  }
}

void DialLane::OnEvents(uint32_t) {
  if (step_ == DialStep::kDialling) return Dialled();
  if (step_ == DialStep::kHello) return ReadAnswer();
  (void)StillUpInLoop();
}

bool DialLane::StillUpInLoop() {
  if (step_ != DialStep::kAnswered) return false;
  char byte;
  const ssize_t got = recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // What has come is the connection's: the acceptor has all of it.
  if (got > 0 || (got < 0 && IsTransientErrno(errno))) return true;
  Retry(got < 0 ? ErrnoStatus(errno, "a lane that was answered broke")
                : absl::UnavailableError("the peer closed a lane that it had answered"));
  return false;
}

bool DialLane::SayEstablishedInLoop() {
  if ((answer().features & kFeatureEstablished) == 0) return true;
  char record[kHeaderBytes];
  EncodeEstablished(record);
  iovec piece{record, sizeof(record)};
  const ssize_t sent = SendBy(seals_.sealer.get(), options().encrypt, fd_.get(), &piece, 1);
  if (sent == sizeof(record)) return true;
  // Nothing was sent, or a part without meaning: the acceptor drops it with the lane.
  Retry(absl::UnavailableError("a lane that was answered takes no more: " + ErrnoText(sent < 0 ? errno : EAGAIN)));
  return false;
}

Hello DialLane::MakeHello() const {
  const DialRequest& request = dialling_->request;
  Hello hello;
  hello.ticket = request.handle.ticket;
  hello.connection_id = dialling_->id;
  hello.kind = index_ == kHealth ? HelloKind::kHealth : HelloKind::kLane;
  hello.features = kFeatureHealth | kFeatureEstablished | (request.piloted ? kFeaturePilot : 0);
  if (options().heal) hello.features |= kFeatureHeal | kFeatureHealHealth;
  hello.lane = static_cast<uint16_t>(std::max(index_, 0));
  hello.lanes = static_cast<uint16_t>(request.lanes);
  hello.express_bytes = static_cast<uint32_t>(options().express_bytes);
  hello.traffic_class = request.path.traffic_class;
  hello.attempt = hellos_;
  return hello;
}

void DialLane::Dialled() {
  const int err = TakeSocketError(fd_.get());
  if (err != 0) {
    const absl::Status failed = ways_.Ended(err);
    if (err != ECONNREFUSED) return NextWay(failed);
    return owner_->RefusalIsFinal() ? GiveUp(failed, true) : Retry(failed);  // A peer that refuses is found.
  }
  ways_.Found();
  Hello hello = MakeHello();
  if (!owner_->Connected(*this, &hello)) return Halt();
  handshake_.emplace(hello, dialling_->secret);
  ++hellos_;
  if (!Speak()) return;
  MoveTo(DialStep::kHello);
  reactor().ChangeInLoop(fd_.get(), EPOLLIN | EPOLLRDHUP);
  SetDeadline(dialling_->tries_on ? tuning::kAnswerNs : options().hello_timeout_ns);
}

bool DialLane::Speak() {
  const std::string said = handshake_->TakeSaid();
  if (said.empty()) return true;
  const ssize_t sent = send(fd_.get(), said.data(), said.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(said.size())) return true;
  Retry(ErrnoStatus(errno, "send of the hello"));
  return false;
}

// All that has come: a deadline that is due after this must find nothing unread.
void DialLane::ReadAnswer() {
  while (step_ == DialStep::kHello) {
    const ssize_t got = recv(fd_.get(), handshake_->room(), handshake_->wants(), MSG_DONTWAIT);
    if (got < 0 && IsTransientErrno(errno)) return;
    if (got < 0) return Retry(ErrnoStatus(errno, "receive of the answer"));
    if (got == 0) return Retry(absl::UnavailableError("the peer closed the connection during the hello"));
    handshake_->Took(static_cast<size_t>(got));
    if (!handshake_->status().ok()) return GiveUp(handshake_->status());
    if (handshake_->done()) return Answered();
    if (!Speak()) return;
  }
}

void DialLane::Answered() {
  reactor().CancelTimerInLoop(timer_);
  if (answer().status == HelloStatus::kBusy) {
    // No room for the lane says nothing about the path, and is no attempt that failed: the bound of the whole connect
    // ends it.
    Halt();
    latest_ = absl::UnavailableError(HelloStatusText(HelloStatus::kBusy));
    no_room_ = std::min(no_room_ + 1, std::max(options().retry_count, 1));
    const int64_t pause_ns = PauseNs(*dialling_, no_room_);
    return DialAt(MonotonicNanos() + std::clamp(pause_ns, tuning::kPauseMinNs, tuning::kRoomPauseMaxNs));
  }
  no_room_ = 0;
  if (answer().status != HelloStatus::kAccepted) {
    const absl::Status refused = absl::UnavailableError(HelloStatusText(answer().status));
    const bool gone = answer().status == HelloStatus::kGone || answer().status == HelloStatus::kUnknownTicket;
    Forgotten() ? owner_->BeginAnew(Describe(refused)) : GiveUp(refused, gone);
    return;
  }
  absl::Status sane = CheckPeerNics(path_.peer, answer().nics);
  if (!sane.ok()) return GiveUp(sane);
  seals_ = handshake_->TakeSeals();
  absl::Status sealed = CheckSealed(options().encrypt, &seals_);
  if (!sealed.ok()) return GiveUp(sealed);
  // An end only.
  reactor().ChangeInLoop(fd_.get(), EPOLLRDHUP | EPOLLET);
  MoveTo(DialStep::kAnswered);
  owner_->LaneAnswered(this);
}

// An acceptor that was stopped, or that this side let wait too long, has dropped the connection or completed it with
// sockets that are gone. The first thing that it hears of a connection it can't have forgotten.
bool DialLane::Forgotten() const {
  const HelloStatus status = answer().status;
  return !dialling_->tries_on && index_ != kHealth && (index_ > 0 || hellos_ > 1) &&
         (status == HelloStatus::kBadLane || status == HelloStatus::kDuplicateLane);
}

bool DialLane::TurnToOther(const absl::Status& why) {
  const LanePath* const other = OtherAddress();
  if (other == nullptr) return false;
  Halt();
  latest_ = Describe(why);
  first_turn_ = std::string(latest_.message());
  first_had_no_route_ = ways_.no_route();
  path_ = *other;
  turned_ = true;
  DialInLoop();
  return true;
}

void DialLane::Retry(absl::Status why) {
  if (absl::IsUnavailable(why) && TurnToOther(why)) return;
  Halt();
  latest_ = why;
  // Once is enough where nobody can be.
  const bool hopeless = !absl::IsUnavailable(why) || dialling_->request.peer_is_elsewhere;
  if (!dialling_->tries_on && (hopeless || attempts_ >= options().retry_count)) {
    if (!absl::IsUnavailable(why) || !Detour(why)) GiveUp(why);
    return;
  }
  ++attempts_;
  if (attempts_ >= tuning::kTriesOfOwnPath && Detour(why)) return;
  turned_ = false;
  DialAt(MonotonicNanos() + PauseNs(*dialling_, attempts_));
}

bool DialLane::Detour(const absl::Status& why) {
  const LanePath* const other = index_ <= 0 || detoured_ ? nullptr : owner_->OtherPath(*this);
  if (other == nullptr) return false;
  detoured_ = true;
  attempts_ = 0;
  LaneNotes* const notes = dialling_->runtime->lane_notes;
  if (notes != nullptr && notes->First("detour " + ways_.Key())) {
    TCPX_WARN("%s; lanes of this path go from %s to %s instead", std::string(Describe(why).message()),
              other->nic->interface.name, other->peer.ToString());
  }
  path_ = *other;
  DialAt(MonotonicNanos());
  return true;
}

absl::Status DialLane::Progress(absl::string_view when) const {
  absl::Status what = latest_.ok() ? FailureOf(FailureKind::kSilence, "no answer yet") : latest_;
  if (step_ == DialStep::kHello) what = absl::UnavailableError(kNoHello);
  return FailureOf(KindOf(what), absl::StrFormat("%stry %d of %d: %s", when, attempts_ + 1, options().retry_count + 1,
                                                 what.message()));
}

absl::Status DialLane::Describe(const absl::Status& why) const {
  const Interface& interface = path_.nic->interface;
  std::string text = absl::StrFormat("connect to %s through %s (%s): %s", path_.peer.ToString(), interface.name,
                                     interface.address.HostString(), why.message());
  if (IsForeign(path_)) {
    absl::StrAppend(&text, "; the peer listens by ", FamilyText(path_.peer), " alone and ", interface.name,
                    " here is used by ", FamilyText(interface.address),
                    " alone: give both an address of one family, see NCCL_SOCKET_FAMILY and NCCL_SOCKET_IFNAME");
  }
  // A firewall's reject rule may answer only some SYNs, because the kernel limits its ICMP errors.
  const FailureKind kind = KindOf(why);
  if (kind == FailureKind::kSilence && !ways_.first_error().empty()) {
    absl::StrAppend(&text, "; before it: ", ways_.first_error());
  }
  return absl::IsUnavailable(why) ? FailureOf(kind, text) : absl::Status(why.code(), text);
}

void DialLane::GiveUp(const absl::Status& why, bool final) {
  if (dialling_->tries_on && !final) return Retry(why);
  if (dialling_->request.peer_is_elsewhere) {
    const InterfaceFilter filter{options().ifname, options().family, options().comm_id};
    return owner_->Finish(OwnAddressFailure(path_.peer, filter, std::string(why.message())));
  }
  const absl::Status described = Describe(why);
  if (!turned_) return owner_->Finish(described);
  owner_->Finish(absl::Status(described.code(), absl::StrCat(described.message(), "; before it: ", first_turn_)));
}

void DialLane::Halt() {
  reactor().CancelTimerInLoop(timer_);
  if (step_ != DialStep::kIdle) MoveTo(DialStep::kIdle);
  seals_ = Seals();
  if (!fd_.valid()) return;
  reactor().UnwatchInLoop(fd_.get());
  fd_.reset();
}

LaneSocket DialLane::TakeSocket() {
  reactor().UnwatchInLoop(fd_.get());
  LaneSocket socket;
  socket.local = LocalAddress(fd_.get()).value_or(SocketAddress());
  socket.peer = PeerAddress(fd_.get()).value_or(SocketAddress());
  socket.fd = std::move(fd_);
  socket.profile = ways_.TakeProfile();
  socket.path = path_;
  socket.seals = std::move(seals_);
  return socket;
}

}  // namespace tcpx
