#include "net_socket/connect/resumed_lanes.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "net_socket/connect/tuning.h"

namespace tcpx {

void ResumedLanes::EnterInLoop(const ConnectionId& id, End end) {
  if (ends_.size() >= sweep_at_) {
    absl::erase_if(ends_, [](const auto& one) { return one.second.taker.cut(); });
    sweep_at_ = std::max<size_t>(16, 2 * ends_.size());
  }
  ends_[id] = std::move(end);
}

const Device* ResumedLanes::KnownInLoop(const Hello& hello) const {
  const auto found = ends_.find(hello.connection_id);
  return found == ends_.end() || found->second.ticket != hello.ticket ? nullptr : found->second.device;
}

HelloStatus ResumedLanes::AdmitInLoop(const Hello& hello) {
  const auto found = ends_.find(hello.connection_id);
  if (found == ends_.end() || found->second.ticket != hello.ticket) return HelloStatus::kGone;
  End& end = found->second;
  if (!IsTrafficClass(hello.traffic_class)) return HelloStatus::kBadTrafficClass;
  if (hello.lanes != end.lanes || hello.lane >= end.attempts.size()) return HelloStatus::kBadLane;
  uint32_t& latest = end.attempts[hello.lane];
  if (hello.attempt <= latest) return HelloStatus::kDuplicateLane;
  if (latest == 0 && hello.lane >= end.lanes && !end.may_open()) return HelloStatus::kUnaccepted;
  latest = hello.attempt;
  return HelloStatus::kAccepted;
}

void ResumedLanes::HelloInLoop(HelloSocket socket, HelloStatus status) {
  if (status != HelloStatus::kAccepted) return AnswerInLoop(socket, status, 0);
  const auto kept = std::make_shared<HelloSocket>(std::move(socket));
  const auto offer = std::make_shared<SocketOffer>();
  offer->fd = kept->fd.get();
  offer->position = kept->hello().express_bytes;
  offer->seals = std::make_shared<Seals>(kept->handshake.TakeSeals());
  offer->done = [this, kept](uint64_t taken) { AnswerInLoop(*kept, HelloStatus::kAccepted, taken); };
  if (TryInLoop(*kept, offer.get())) return;
  runtime_->reactor.RepeatInLoop(tuning::kInUseNs, [this, kept, offer] {
    return TryInLoop(*kept, offer.get()) ? Reactor::kOver : tuning::kInUseNs;
  });
}

bool ResumedLanes::TryInLoop(const HelloSocket& socket, SocketOffer* offer) {
  const Hello& hello = socket.hello();
  const auto found = ends_.find(hello.connection_id);
  // A newer one may have come meanwhile.
  if (found != ends_.end() && found->second.attempts[hello.lane] != hello.attempt) return true;
  const Link<SocketTaker> end = found == ends_.end() ? Link<SocketTaker>() : found->second.taker;
  const auto take = [&](SocketTaker* taker) { return taker->TakeSocket(hello.lane, offer); };
  const Handover how = end.Ask(Handover::kRefused, take);
  if (how == Handover::kRefused) AnswerInLoop(socket, HelloStatus::kGone, 0);
  return how != Handover::kBusy;
}

void ResumedLanes::AnswerInLoop(const HelloSocket& socket, HelloStatus status, uint64_t taken) {
  Answer answer;
  answer.status = status;
  answer.features = socket.hello().features & (kFeatureHealth | kFeatureHeal);
  answer.taken = taken;
  // The lane may have it already: its dialler must not wait for the answer.
  if (!hellos_->AnswerInLoop(socket, answer)) shutdown(socket.fd.get(), SHUT_RDWR);
}

}  // namespace tcpx
