#include "net_socket/connect/resume_dials.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "net_socket/comm/sender_healing.h"
#include "net_socket/connect/tuning.h"

namespace tcpx {

const LanePath* LanePaths::Other(const LanePath& taken, int turn, const Serves& serves, const Carries& carries) const {
  struct Choice {
    const LanePath* path;
    int carrying;  // lanes that go by it
  };
  std::vector<Choice> choices;
  for (const LanePath& path : own_) {
    const auto known = [&path](const Choice& choice) { return SamePath(*choice.path, path); };
    if (SamePath(path, taken) || !serves(path) || std::any_of(choices.begin(), choices.end(), known)) continue;
    int carrying = 0;
    for (int lane = 0; lane < lanes(); ++lane) {
      carrying += open_[static_cast<size_t>(lane)] && SamePath(at(lane), path) && carries(lane);
    }
    choices.push_back({&path, carrying});
  }
  if (choices.empty()) return nullptr;
  // None comes after all others.
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& one, const Choice& other) {
    return static_cast<unsigned>(one.carrying - 1) < static_cast<unsigned>(other.carrying - 1);
  });
  return choices[static_cast<size_t>(turn) % choices.size()].path;
}

class ResumeDials::Dial final : public DialLane::Owner {
 public:
  Dial(ResumeDials* all, int lane, Why why, uint32_t records_taken)
      : all_(all),
        index_(lane),
        why_(why),
        let_go_(why == Why::kLost || why == Why::kOpens),
        records_taken_(records_taken) {
    const int64_t bound_ns = all->dialling_.runtime->options.reconnect_timeout_ns;
    bound_ = reactor().RepeatDeadlineInLoop(why == Why::kOpens ? tuning::kOpenNs : bound_ns, [this, bound_ns] {
      // Not while another lane is up: the peer can be reached.
      const auto overdue = [](SenderHealing* lanes) { return lanes->healing().Overdue(); };
      if (why_ != Why::kOpens && !all_->lanes_.Ask(false, overdue)) return tuning::kAskOverdueNs;
      const DialLane* const shown = first_ != nullptr ? first_.get() : second_.get();
      Finish(absl::UnavailableError(
          absl::StrFormat("no lane is back within %d s (TCPX_RECONNECT_TIMEOUT), %s", bound_ns / kSecond,
                          shown == nullptr ? "none was dialled" : shown->Progress("").message())));
      return Reactor::kOver;
    });
    // After this call also when at once: a dial that fails ends this, and the connection's link may be held here.
    next_ = reactor().AddTimerInLoop(0, [this] { AwaitFirstDial(); });
  }
  ~Dial() override {
    for (Reactor::TimerId timer : {bound_, next_, turn_timer_}) reactor().CancelTimerInLoop(timer);
  }

  // From the beginning: the interfaces are not what they were.
  void AnewInLoop() {
    if (placing_ || over_) return;
    reactor().CancelTimerInLoop(next_);
    next_ = reactor().AddTimerInLoop(0, [this] { RaceInLoop(); });
  }
  bool returns() const { return why_ == Why::kReturns && !let_go_; }

 private:
  const LanePath* OtherPath(const DialLane&) override { return nullptr; }
  void NotRefused() override { NotRefused(false); }
  int64_t TakeDialTurn() override { return TakeDialTurn(false); }
  void BeginAnew(absl::Status why) override { Finish(std::move(why)); }

  Reactor& reactor() { return all_->dialling_.runtime->reactor; }

  // Asks the connection's arbiter. `otherwise`: the connection is closed.
  template <typename Answer, typename Function>
  Answer Judge(Answer otherwise, Function function) {
    return all_->lanes_.Ask(otherwise, [&](SenderHealing* lanes) { return lanes->healing().Judge(function); });
  }

  const LanePath& FirstPath() const {
    return why_ == Why::kReturns ? all_->paths_.own(index_) : all_->paths_.at(index_);
  }

  std::unique_ptr<DialLane> DialBy(const LanePath& path) {
    if (why_ != Why::kOpens) all_->dialled_.fetch_add(1, std::memory_order_relaxed);
    auto lane = std::make_unique<DialLane>(&all_->dialling_, this, index_);
    lane->DialInLoop(path);
    return lane;
  }

  void AwaitFirstDial() {
    const auto take = [this](Arbiter* arbiter) { return arbiter->TakeFirstDial(index_, MonotonicNanos()); };
    const int64_t at_ns = Judge(int64_t{0}, take);
    if (at_ns == 0) return RaceInLoop();
    next_ = reactor().AddTimerInLoop(at_ns, [this] { AwaitFirstDial(); });
  }

  void RaceInLoop() {
    first_.reset();
    second_.reset();
    reactor().CancelTimerInLoop(turn_timer_);
    const LanePath& path = FirstPath();
    const bool serves = all_->Serves(path);
    if (serves || all_->OtherPath(index_, path, 0) == nullptr) first_ = DialBy(path);
    if (over_) return;
    if (!returns()) return OtherAt(MonotonicNanos() + (serves ? tuning::kAloneNs : 0));
    turn_timer_ = reactor().AddTimerInLoop(MonotonicNanos() + tuning::kReturnNs, [this] {
      if (!let_go_) EndSoon();
    });
  }

  // Dials in addition to the first: an interface here, or at the peer, may be out. Every other time, or if there is no
  // other path, it uses the same path: a network that spreads flows by their ports may drop the first flow, or its SYN
  // was lost, which is sent again only after a second. While this waits for its turn, the one before goes on.
  void OtherAt(int64_t at_ns) {
    turn_timer_ = reactor().AddTimerInLoop(at_ns, [this] {
      const int64_t again_ns = TakeDialTurn(turn_ == 0);
      if (again_ns != 0) return OtherAt(again_ns);
      const LanePath* const other = turn_ % 2 == 0 ? all_->OtherPath(index_, FirstPath(), turn_ / 2) : nullptr;
      ++turn_;
      OtherAt(MonotonicNanos() + tuning::kTurnNs);
      second_ = DialBy(other == nullptr ? FirstPath() : *other);
    });
  }

  // A process that is gone has ended all its sockets. While one is up, a device on the path may have refused.
  bool RefusalIsFinal() override {
    all_->health_->Ask();
    if (all_->health_->socket().PeerVanished()) return true;
    const bool up = all_->dialling_.runtime->health.ProcessIsUpInLoop(all_->health_.get());
    gone_ = Judge(true, [up](Arbiter* arbiter) { return arbiter->Refused(up, false, MonotonicNanos()); });
    return gone_;
  }
  void NotRefused(bool reached) {
    (void)Judge(true, [reached](Arbiter* arbiter) {
      arbiter->NotRefused();
      if (reached) arbiter->Reached(MonotonicNanos());
      return true;
    });
  }

  int64_t TakeDialTurn(bool first) {
    const auto take = [&](Arbiter* arbiter) { return arbiter->TakeDialTurn(index_, first, MonotonicNanos()); };
    return Judge(int64_t{0}, take);
  }

  // The first that gets here goes on alone, for as long as it gets on.
  bool Connected(const DialLane& lane, Hello* hello) override {
    NotRefused(true);
    if (why_ == Why::kReturns) all_->dialling_.runtime->lost_paths->FoundInLoop(lane.path());
    if (!let_go_) {
      const LetGoWhy why = why_ == Why::kReturns ? LetGoWhy::kReturns : LetGoWhy::kSilent;
      let_go_ = all_->lanes_.Ask(false, [&](auto* lanes) { return lanes->LetsGo(index_, why, &records_taken_); });
    }
    if (!let_go_) {
      EndSoon();
      return false;
    }
    HaltAllBut(&lane);
    reactor().CancelTimerInLoop(turn_timer_);
    turn_timer_ = reactor().AddTimerInLoop(MonotonicNanos() + tuning::kResumeHelloNs, [this] { RaceInLoop(); });
    hello->kind = HelloKind::kResume;
    hello->attempt = ++all_->attempts_[static_cast<size_t>(index_)];
    hello->express_bytes = records_taken_;
    return true;
  }

  void HaltAllBut(const DialLane* by) {
    for (DialLane* const lane : {first_.get(), second_.get()}) {
      if (lane != nullptr && lane != by) lane->Halt();
    }
  }

  void LaneAnswered(DialLane* lane) override {
    HaltAllBut(lane);
    placing_ = true;
    path_ = lane->path();
    auto socket = std::make_shared<LaneSocket>(lane->TakeSocket());
    offer_.fd = socket->fd.get();
    offer_.position = lane->answer().taken;
    offer_.seals = std::make_shared<Seals>(std::move(socket->seals));
    offer_.done = [socket](uint64_t) {};
    reactor().CancelTimerInLoop(turn_timer_);
    reactor().CancelTimerInLoop(next_);
    next_ = reactor().RepeatInLoop(0, [this] { return OfferInLoop() ? Reactor::kOver : tuning::kInUseNs; });
  }

  // False: the connection is in use just now.
  bool OfferInLoop() {
    const auto take = [this](SocketTaker* taker) { return taker->TakeSocket(index_, &offer_); };
    const Handover how = all_->taker_.Ask(Handover::kRefused, take);
    if (how == Handover::kBusy) return false;
    if (how == Handover::kTaken) all_->paths_.Place(index_, path_);
    EndSoon();
    if (how == Handover::kRefused && why_ == Why::kOpens) NotOpened();
    return true;
  }

  void Finish(absl::Status status) override {
    if (std::exchange(over_, true)) return;
    EndSoon();
    if (!let_go_) return;
    if (why_ == Why::kOpens) return NotOpened();
    all_->health_->Poll();  // A peer that has closed, or failed, has said so.
    const absl::Status why =
        absl::UnavailableError(absl::StrCat("a lane was lost and can't be resumed: ", status.message()));
    // The health socket, which all connections listen to, hears first. Not at once: the lane is on the stack.
    reactor().AddTimerInLoop(0, [health = all_->health_, lanes = all_->lanes_, gone = gone_, why, lane = index_] {
      if (gone) health->GoneInLoop(nullptr);
      lanes.With([&](SenderHealing* one) { one->LaneGone(why, lane); });
    });
  }

  void NotOpened() {
    all_->lanes_.With([this](SenderHealing* lanes) { lanes->LaneRefused(index_); });
  }

  // Not at once: the lane may be on the stack.
  void EndSoon() {
    over_ = true;
    for (Reactor::TimerId timer : {bound_, next_, turn_timer_}) reactor().CancelTimerInLoop(timer);
    next_ = reactor().AddTimerInLoop(0, [all = all_, lane = index_] { all->EndDialInLoop(lane); });
  }

  ResumeDials* const all_;
  const int index_;
  const Why why_;
  bool let_go_;
  uint32_t records_taken_;
  std::unique_ptr<DialLane> first_;   // by the lane's own path, or the one that it has
  std::unique_ptr<DialLane> second_;  // by another
  int turn_ = 0;
  SocketOffer offer_;
  LanePath path_;         // of the offer
  bool placing_ = false;  // there is one
  bool over_ = false;
  bool gone_ = false;  // the peer's process, by a refusal
  Reactor::TimerId bound_{0, 0};
  Reactor::TimerId next_{0, 0};
  Reactor::TimerId turn_timer_{0, 0};
};

ResumeDials::ResumeDials(const DialSetup& setup, std::shared_ptr<HealthPeer> health, std::vector<LanePath> paths)
    : dialling_(setup.OfEstablished()),
      health_(std::move(health)),
      paths_(std::move(paths), dialling_.request.lanes),
      attempts_(static_cast<size_t>(paths_.lanes())) {}

ResumeDials::~ResumeDials() = default;

void ResumeDials::StartInLoop(Link<SenderHealing> lanes, Link<SocketTaker> taker) {
  lanes_ = std::move(lanes);
  taker_ = std::move(taker);
  std::vector<const Nic*> nics;
  for (int lane = 0; lane < paths_.lanes(); ++lane) nics.push_back(paths_.own(lane).nic);
  dialling_.runtime->lost_paths->JoinInLoop(this, nics);
}

void ResumeDials::CloseInLoop() {
  dials_.clear();
  dialling_.runtime->lost_paths->LeaveInLoop(this);
}

void ResumeDials::DialInLoop(int lane, Why why, uint32_t records_taken) {
  dials_[lane] = std::make_unique<Dial>(this, lane, why, records_taken);
}

// One that came to nothing leaves the lane where it was.
void ResumeDials::EndDialInLoop(int lane) {
  dials_.erase(lane);
  if (paths_.away(lane)) dialling_.runtime->lost_paths->WaitInLoop(this, paths_.own(lane));
}

void ResumeDials::ClosedInLoop(int lane) {
  dials_.erase(lane);
  paths_.Close(lane);
}

void ResumeDials::TryBesideInLoop(int lane) {
  const auto found = dials_.find(lane);
  if (found == dials_.end() || found->second->returns()) DialInLoop(lane, Why::kSilent, 0);
}

const LanePath* ResumeDials::OtherPath(int lane, const LanePath& taken, int turn) const {
  const auto serves = [this](const LanePath& path) { return Serves(path); };
  const auto carries = [this, lane](int other) { return other != lane && !dials_.contains(other); };
  return paths_.Other(taken, turn, serves, carries);
}

// A lane that has nowhere else to go keeps its socket: it counts as up, and may go on when the interface is back.
void ResumeDials::NicsChangedInLoop() {
  for (auto& [lane, dial] : dials_) dial->AnewInLoop();
  for (int lane = 0; lane < paths_.lanes(); ++lane) {
    const LanePath& path = paths_.at(lane);
    const auto dial = dials_.find(lane);
    const bool dialled = dial != dials_.end() && !dial->second->returns();
    if (dialled || Serves(path) || OtherPath(lane, path, 0) == nullptr) continue;
    const Interface& interface = path.nic->interface;
    const auto why = absl::UnavailableError(
        absl::StrFormat("%s (%s) has no carrier, or lost its address", interface.name, interface.address.HostString()));
    lanes_.With([&](SenderHealing* lanes) { lanes->LeavesPath(lane, why); });
  }
}

bool ResumeDials::ReturnInLoop(const LanePath& path, int most) {
  bool waits = false;
  for (int lane = 0; lane < paths_.lanes() && most > 0; ++lane) {
    if (!paths_.away(lane) || !SamePath(paths_.own(lane), path)) continue;
    waits = true;
    if (dials_.contains(lane)) continue;
    DialInLoop(lane, Why::kReturns, 0);
    --most;
  }
  return waits;
}

}  // namespace tcpx
