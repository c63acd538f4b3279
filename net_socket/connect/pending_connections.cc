#include "net_socket/connect/pending_connections.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/counted.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/traffic_class.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/connect_bounds.h"
#include "net_socket/connect/key_turns.h"

namespace tcpx {

bool PendingConnections::HasRoomInLoop(int64_t descriptors) const {
  const int64_t limit = DescriptorLimit();  // Negative: unknown.
  return limit < 0 || *unaccepted_ + runtime_->health.unused_in_loop() + descriptors <= limit / kUnacceptedShare;
}

bool PendingConnections::HasRoomForInLoop(const std::shared_ptr<UnacceptedPlace>& place, int64_t descriptors) {
  const int64_t now = MonotonicNanos();
  const auto has_room = [&] { return place->free_place()->Ask(place, HasRoomInLoop(descriptors), now); };
  if (has_room()) return true;
  const int64_t turn_ns = runtime_->options.hello_timeout_ns;
  const std::optional<ConnectionId> overdue = place->free_place()->Overdue(place->source(), turn_ns, now);
  // One that is established and only waits for accept stays.
  if (!overdue.has_value() || !pending_.contains(*overdue)) return false;
  if (!CompleteInLoop(*overdue)) {
    CloseLateInLoop(*overdue, turn_ns, ", not the word that all are up, and others wait for their place");
  }
  return has_room();
}

std::function<bool()> PendingConnections::MayOpen(const std::shared_ptr<UnacceptedPlace>& place) {
  return [this, held = std::weak_ptr<UnacceptedPlace>(place)] {
    const std::shared_ptr<UnacceptedPlace> unaccepted = held.lock();
    if (unaccepted == nullptr) return true;
    if (!HasRoomForInLoop(unaccepted, 1)) return false;
    unaccepted->Hold(unaccepted->held() + 1);
    return true;
  };
}

// The first lane of a connection that is not pending.
HelloStatus PendingConnections::AdmitNewInLoop(const Hello& hello, const SocketAddress& from,
                                               const std::shared_ptr<Listening>& listening) {
  const ConnectionId& id = hello.connection_id;
  if (listening->connections.contains(id)) {
    // Complete here, and its dialler has not heard so: nobody may have the old one.
    if (hello.attempt == 0 || !TakeBack(listening.get(), id)) return HelloStatus::kDuplicateLane;
    listening->connections.erase(id);
  }
  if (hello.lane != 0) return HelloStatus::kBadLane;
  const auto of_tag = by_tag_.find(HealthTag(id));
  if (of_tag != by_tag_.end() && of_tag->second.size() >= kOfOneTagMax) return HelloStatus::kUnaccepted;
  if (listening->free_place == nullptr) listening->free_place = std::make_shared<FreePlace>();
  const auto place = std::make_shared<UnacceptedPlace>(unaccepted_, listening->free_place, id, SourceOf(from));
  // For all its lanes and a health socket, so that it completes unless others take the room meanwhile.
  if (!HasRoomForInLoop(place, hello.lanes + 1)) return HelloStatus::kUnaccepted;
  ForgetClosed(listening.get());
  listening->connections[id] = {};
  auto pending = std::make_unique<PendingConnection>(&runtime_->reactor, listening, hello, &stirred_, place);
  const auto expire = [this, id] { return ExpireInLoop(id); };
  pending->timer = runtime_->reactor.RepeatDeadlineInLoop(PatienceNs(runtime_->options), expire);
  pending_.emplace(id, std::move(pending));
  by_tag_[HealthTag(id)].insert(id);
  return HelloStatus::kAccepted;
}

HelloStatus PendingConnections::AdmitInLoop(const Hello& hello, const SocketAddress& from,
                                            const std::shared_ptr<Listening>& listening, PendingConnection** out) {
  if (!IsTrafficClass(hello.traffic_class)) return HelloStatus::kBadTrafficClass;
  if (hello.lanes == 0 || hello.lanes > kLanesMax || hello.lane >= hello.lanes) return HelloStatus::kBadLane;
  if (!pending_.contains(hello.connection_id)) {
    const HelloStatus status = AdmitNewInLoop(hello, from, listening);
    if (status != HelloStatus::kAccepted) return status;
  }
  PendingConnection* pending = pending_.find(hello.connection_id)->second.get();
  if (pending->listening() != listening) return HelloStatus::kBadLane;
  const HelloStatus place = pending->MakePlaceFor(hello);
  if (place != HelloStatus::kAccepted) return place;
  if (!HasRoomForInLoop(pending->place, 1)) {
    DropIfEmptyInLoop(hello.connection_id);
    return HelloStatus::kUnaccepted;
  }
  runtime_->health.LookInLoop(HealthTag(hello.connection_id));
  *out = pending;
  return HelloStatus::kAccepted;
}

void PendingConnections::AddLaneInLoop(const Hello& hello, LaneSocket socket, PendingConnection* pending) {
  pending->Add(hello, std::move(socket));
  watch_->CameInLoop(&pending->listening()->wait, pending->from(), false);
  (void)CompleteInLoop(hello.connection_id);
}

std::optional<AcceptWatch::Partial> PendingConnections::FindPartialInLoop(const AcceptWait& wait) const {
  std::optional<AcceptWatch::Partial> most;
  for (const auto& [id, pending] : pending_) {
    const size_t present = pending->present();
    if (&pending->listening()->wait != &wait || (most.has_value() && most->present >= present)) continue;
    most = AcceptWatch::Partial{pending->from(), present, pending->lanes(), pending->whole()};
  }
  return most;
}

bool PendingConnections::CompleteInLoop(const ConnectionId& id) {
  PendingConnection* const waiting = pending_.find(id)->second.get();
  if (waiting->present() < waiting->lanes()) return false;
  std::shared_ptr<HealthPeer> health;
  if ((waiting->hello().features & kFeatureHealth) != 0) {
    health = runtime_->health.FindAcceptedInLoop(HealthTag(id));
    if (health == nullptr && !waiting->whole()) return false;
  }
  waiting->BecomeWhole(health);
  const std::optional<HelloStatus> word = waiting->Hear();
  if (!word.has_value()) return false;
  if (*word != HelloStatus::kAccepted) {
    rejected_->NoteInLoop(*word, waiting->from());
    DropInLoop(id);
    return true;
  }
  const std::unique_ptr<PendingConnection> pending = TakeInLoop(id);
  established_(id, pending.get());
  return true;
}

int64_t PendingConnections::ExpireInLoop(const ConnectionId& id) {
  if (CompleteInLoop(id)) return Reactor::kOver;
  const int64_t patience_ns = PatienceNs(runtime_->options);
  // Its dialler may be stopped, and may have said the word: the end of lane 0 tells that it has not.
  if (pending_.find(id)->second->whole()) return patience_ns;
  CloseLateInLoop(id, patience_ns, "");
  return Reactor::kOver;
}

// Anyone who has a ticket can begin connections: the lines are limited.
void PendingConnections::CloseLateInLoop(const ConnectionId& id, int64_t waited_ns, const char* why) {
  const PendingConnection& pending = *pending_.find(id)->second;
  std::string more;
  if (late_lines_.May(MonotonicNanos(), &more)) {
    TCPX_INFO("accept: %d of %s from %s have come within %d s%s: they are closed, and the peer may begin anew%s",
              pending.present(), Counted(static_cast<int64_t>(pending.lanes()), "lane"), pending.from().ToString(),
              waited_ns / kSecond, why, more);
  }
  DropInLoop(id);
}

void PendingConnections::LaneStirredInLoop(const ConnectionId& id, size_t lane, bool ended) {
  // What was said before the end counts.
  if (CompleteInLoop(id) || !ended) return;
  const std::shared_ptr<HealthPeer> health = pending_.find(id)->second->health().lock();
  if (health != nullptr && health->ended_in_order_in_loop()) HealthDiedInLoop(health->tag(), true);
  if (!pending_.contains(id)) return;
  pending_.find(id)->second->EndLane(lane);
  DropIfEmptyInLoop(id);
}

std::vector<ConnectionId> PendingConnections::OfTagInLoop(uint64_t tag) const {
  const auto found = by_tag_.find(tag);
  if (found == by_tag_.end()) return {};
  return std::vector<ConnectionId>(found->second.begin(), found->second.end());
}

HelloStatus PendingConnections::AdmitHealthInLoop(uint64_t tag) {
  const std::vector<ConnectionId> ids = OfTagInLoop(tag);
  for (const ConnectionId& id : ids) {
    if (CompleteInLoop(id)) continue;
    pending_.find(id)->second->Prune();
    DropIfEmptyInLoop(id);
  }
  const bool known = !ids.empty() || runtime_->health.FindAcceptedInLoop(tag) != nullptr;
  return known || HasRoomInLoop(1) ? HelloStatus::kAccepted : HelloStatus::kUnaccepted;
}

void PendingConnections::HealthCameInLoop(uint64_t tag) {
  runtime_->health.DropUnusedLaterInLoop(tag, PatienceNs(runtime_->options));
  for (const ConnectionId& id : OfTagInLoop(tag)) (void)CompleteInLoop(id);
}

void PendingConnections::HealthDiedInLoop(uint64_t tag, bool waits) {
  for (const ConnectionId& id : OfTagInLoop(tag)) {
    if (CompleteInLoop(id)) continue;
    PendingConnection& pending = *pending_.find(id)->second;
    if (!pending.whole() || (waits && !pending.first_left())) continue;
    // A stranger is nobody whom a one-sided group waits for.
    if (!pending.listening()->communicator->one_sided) {
      watch_->DiedInLoop(&pending.listening()->wait, pending.from());
    }
    DropInLoop(id);
  }
}

void PendingConnections::DropIfEmptyInLoop(const ConnectionId& id) {
  auto found = pending_.find(id);
  if (found != pending_.end() && found->second->present() == 0) DropInLoop(id);
}

void PendingConnections::DropInLoop(const ConnectionId& id) {
  const std::unique_ptr<PendingConnection> pending = TakeInLoop(id);
  pending->listening()->connections.erase(pending->hello().connection_id);
}

std::unique_ptr<PendingConnection> PendingConnections::TakeInLoop(const ConnectionId& id) {
  const auto found = pending_.find(id);
  std::unique_ptr<PendingConnection> taken = std::move(found->second);
  runtime_->reactor.CancelTimerInLoop(taken->timer);
  const auto of_tag = by_tag_.find(HealthTag(id));
  of_tag->second.erase(id);
  if (of_tag->second.empty()) by_tag_.erase(of_tag);
  pending_.erase(found);
  return taken;
}

void PendingConnections::DropOfInLoop(const std::shared_ptr<Listening>& listening) {
  std::vector<ConnectionId> gone;
  for (auto& [id, pending] : pending_) {
    if (pending->listening() == listening) gone.push_back(id);
  }
  for (const ConnectionId& id : gone) DropInLoop(id);
}

void PendingConnections::CloseInLoop() {
  while (!pending_.empty()) DropInLoop(ConnectionId(pending_.begin()->first));
}

}  // namespace tcpx
