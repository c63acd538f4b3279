#include "net_socket/connect/resume_dials.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"

namespace tcpx {
namespace {

// A socket that dies as soon as it stands is not dialled as fast as that happens.
constexpr int64_t kBetweenDialsNs = 10 * kMillisecond;
// Until a connection that is in use just now is asked again.
constexpr int64_t kBusyNs = 100 * kMicrosecond;
// Whether it is given up, once it could be.
constexpr int64_t kAskAgainNs = 500 * kMillisecond;
// For a lane that is opened, which nobody has missed.
constexpr int64_t kOpenNs = 3 * kSecond;

}  // namespace

// In place of a socket that was lost, beside one that may still go on, for a lane that has none.
enum class ResumeDials::Purpose { kResume, kBeside, kOpen };

class ResumeDials::Dial final : public DialLane::Owner {
 public:
  Dial(ResumeDials* all, int lane, Purpose purpose, uint32_t records_taken, std::shared_ptr<CommLink> link)
      : all_(all), purpose_(purpose), records_taken_(records_taken), link_(std::move(link)), lane_(this, lane) {}
  ~Dial() override {
    reactor().CancelTimerInLoop(bound_);
    reactor().CancelTimerInLoop(next_);
  }

  void StartInLoop() {
    BoundInLoop(purpose_ == Purpose::kOpen ? kOpenNs : all_->runtime_->options.reconnect_timeout_ns);
    const int64_t now = MonotonicNanos();
    int64_t& began_ns = all_->histories_[index()].began_ns;
    began_ns = std::max(now, began_ns == 0 ? 0 : began_ns + kBetweenDialsNs);
    // Behind this call also when at once: a dial that fails ends this.
    next_ = reactor().AddTimerInLoop(began_ns, [this] { lane_.DialInLoop(all_->paths_[index()]); });
  }

 private:
  Runtime* runtime() override { return all_->runtime_; }
  const Secret* secret() const override { return all_->secret_; }
  const DialRequest& request() const override { return all_->request_; }
  const ConnectionId& connection_id() const override { return all_->id_; }
  // That of a lane which goes another way.
  const LanePath* OtherPath(const DialLane& lane) override {
    for (const LanePath& path : all_->paths_) {
      if (path.nic != lane.path().nic) return &path;
    }
    return nullptr;
  }
  bool refusal_is_final() const override { return true; }
  bool tries_on() const override { return true; }
  Reactor& reactor() { return all_->runtime_->reactor; }
  size_t index() const { return static_cast<size_t>(lane_.index()); }

  bool Connected() override {
    if (purpose_ != Purpose::kBeside) return true;
    link_->With([this](Watched* comm) { let_go_ = comm->LetsGo(lane_.index(), &records_taken_); });
    if (!let_go_) EndSoon();
    return let_go_;
  }

  void Complete(Hello* hello) override {
    hello->kind = HelloKind::kResume;
    hello->attempt = ++all_->histories_[index()].attempts;
    hello->express_bytes = records_taken_;
  }

  void LaneAnswered(const DialLane& lane) override {
    auto socket = std::make_shared<LaneSocket>(lane_.TakeSocket());
    offer_.fd = socket->fd.get();
    offer_.position = lane.answer().taken;
    offer_.done = [socket](uint64_t) {};
    reactor().CancelTimerInLoop(next_);
    next_ = reactor().AddTimerInLoop(0, [this] { OfferInLoop(); });
  }

  // Not while another lane stands: the peer can be reached.
  void BoundInLoop(int64_t after_ns) {
    bound_ = reactor().AddDeadlineInLoop(after_ns, [this] {
      bool over = purpose_ == Purpose::kOpen;
      if (!over) link_->With([&over](Watched* comm) { over = comm->LanesOverdue(); });
      if (!over) return BoundInLoop(kAskAgainNs);
      Finish(absl::UnavailableError(absl::StrFormat("no lane is back within %d s (TCPX_RECONNECT_TIMEOUT), %s",
                                                    all_->runtime_->options.reconnect_timeout_ns / kSecond,
                                                    lane_.Progress())));
    });
  }

  void OfferInLoop() {
    Handover how = Handover::kRefused;
    link_->With([&](Watched* comm) { how = comm->TakeSocket(lane_.index(), &offer_); });
    if (how == Handover::kBusy) {
      next_ = reactor().AddTimerInLoop(MonotonicNanos() + kBusyNs, [this] { OfferInLoop(); });
      return;
    }
    EndSoon();
    if (how == Handover::kRefused && purpose_ == Purpose::kOpen) {
      link_->With([this](Watched* comm) { comm->LaneRefused(lane_.index()); });
    }
  }

  void BeginAnew(absl::Status why) override { Finish(std::move(why)); }

  void Finish(absl::Status status) override {
    if (std::exchange(over_, true)) return;
    EndSoon();
    if (purpose_ == Purpose::kBeside && !let_go_) return;
    if (purpose_ == Purpose::kOpen) {
      link_->With([this](Watched* comm) { comm->LaneRefused(lane_.index()); });
      return;
    }
    all_->health_->Poll();  // A peer that has closed, or failed, has said so.
    const absl::Status why =
        absl::UnavailableError(absl::StrCat("a lane was lost and can't be resumed: ", status.message()));
    link_->With([&](Watched* comm) { comm->LaneGone(why, lane_.index()); });
  }

  // Not at once: the lane may be on the stack.
  void EndSoon() {
    reactor().CancelTimerInLoop(bound_);
    reactor().CancelTimerInLoop(next_);
    next_ = reactor().AddTimerInLoop(0, [all = all_, lane = lane_.index()] { all->dials_.erase(lane); });
  }

  ResumeDials* const all_;
  const Purpose purpose_;
  bool let_go_ = false;
  uint32_t records_taken_;
  const std::shared_ptr<CommLink> link_;
  DialLane lane_;
  SocketOffer offer_;
  bool over_ = false;
  Reactor::TimerId bound_{0, 0};
  Reactor::TimerId next_{0, 0};
};

ResumeDials::ResumeDials(Runtime* runtime, const Secret* secret, DialRequest request, const ConnectionId& id,
                         std::shared_ptr<Health> health, std::vector<LanePath> paths)
    : runtime_(runtime),
      secret_(secret),
      request_(std::move(request)),
      id_(id),
      health_(std::move(health)),
      paths_(std::move(paths)),
      histories_(paths_.size()) {}

ResumeDials::~ResumeDials() = default;

void ResumeDials::RedialInLoop(int lane, uint32_t records_taken, std::shared_ptr<CommLink> link) {
  auto& dial = dials_[lane];
  dial = std::make_unique<Dial>(this, lane, Purpose::kResume, records_taken, std::move(link));
  dial->StartInLoop();
}

void ResumeDials::OpenInLoop(int lane, std::shared_ptr<CommLink> link) {
  auto& dial = dials_[lane];
  dial = std::make_unique<Dial>(this, lane, Purpose::kOpen, 0, std::move(link));
  dial->StartInLoop();
}

void ResumeDials::TryBesideInLoop(int lane, std::shared_ptr<CommLink> link) {
  auto& dial = dials_[lane];
  if (dial != nullptr) return;
  dial = std::make_unique<Dial>(this, lane, Purpose::kBeside, 0, std::move(link));
  dial->StartInLoop();
}

void ResumeDials::CloseInLoop() { dials_.clear(); }

}  // namespace tcpx
