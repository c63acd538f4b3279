// What the acceptor does with health sockets, for the connections that wait for them.
#include <utility>

#include "net_socket/connect/acceptor.h"
#include "net_socket/connect/connect_bounds.h"
#include "net_socket/connect/health_dial.h"

namespace tcpx {

void Acceptor::HealthDiedInLoop(uint64_t tag, bool waits) {
  for (const ConnectionId& id : PendingOfInLoop(tag)) {
    if (CompleteInLoop(id)) continue;
    PendingConnection& pending = *pending_.find(id)->second;
    if (!pending.whole() || (waits && !pending.first_left())) continue;
    accept_watch_.DiedInLoop(&pending.listening()->wait, pending.from());
    DropPendingInLoop(id);
  }
}

std::vector<ConnectionId> Acceptor::PendingOfInLoop(uint64_t tag) const {
  std::vector<ConnectionId> ids;
  for (const auto& [id, pending] : pending_) {
    if (HealthTag(id) == tag) ids.push_back(id);
  }
  return ids;
}

// Nobody else may ever use it.
void Acceptor::DropUnusedHealthLater(const std::weak_ptr<HealthPeer>& health) {
  if (health.expired()) return;
  Runtime* const runtime = runtime_;
  runtime->reactor.AddDeadlineInLoop(PatienceNs(runtime->options),
                                     [runtime, health] { runtime->health.DropUnusedInLoop(health.lock()); });
}

HelloStatus Acceptor::AdmitHealthInLoop(const Hello& hello) {
  if (!KnowsInLoop(hello)) return HelloStatus::kUnknownTicket;
  for (const ConnectionId& id : PendingOfInLoop(HealthTag(hello.connection_id))) {
    if (CompleteInLoop(id)) continue;
    pending_.find(id)->second->Prune();
    DropIfEmptyInLoop(id);
  }
  return HelloStatus::kAccepted;
}

void Acceptor::AddHealthInLoop(const Hello& hello, LaneSocket socket) {
  const uint64_t tag = HealthTag(hello.connection_id);
  runtime_->health.AcceptInLoop(tag, std::move(socket.fd), HealthSettingsFor(runtime_->options, hello.features),
                                std::move(socket.seals));
  DropUnusedHealthLater(runtime_->health.FindAcceptedInLoop(tag));
  for (const ConnectionId& id : PendingOfInLoop(tag)) (void)CompleteInLoop(id);
}

}  // namespace tcpx
