#include "net_socket/connect/dial_turns.h"

#include <algorithm>

namespace tcpx {

void DialTurns::EndedInLoop(const std::string& peer, uint64_t dial) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Peer& at = found->second;
  const auto is_it = [dial](const Turn& turn) { return turn.dial == dial; };
  at.waiting.erase(std::remove_if(at.waiting.begin(), at.waiting.end(), is_it), at.waiting.end());
  const auto begun = at.begun.find(dial);
  if (begun != at.begun.end()) {
    at.lanes -= begun->second;
    at.begun.erase(begun);
    at.stalled_at_ns = MonotonicNanos() + kStalledNs;
  }
  // Not at once: the next one, which may end at once too, is not to begin on this one's stack.
  ServeAtInLoop(peer, 0);
}

void DialTurns::ServeAtInLoop(const std::string& name, int64_t at_ns) {
  Peer& peer = peers_[name];
  reactor_->CancelTimerInLoop(peer.timer);
  peer.timer = reactor_->AddTimerInLoop(at_ns, [this, name] { ServeInLoop(name); });
}

void DialTurns::ServeInLoop(const std::string& name) {
  Peer& peer = peers_[name];
  const int64_t now_ns = MonotonicNanos();
  if (peer.lanes > 0 && now_ns >= peer.stalled_at_ns) {
    peer.begun.clear();
    peer.lanes = 0;
  }
  while (!peer.waiting.empty() && (peer.lanes == 0 || peer.lanes + peer.waiting.front().lanes <= kLanesAtOnce)) {
    const Turn turn = std::move(peer.waiting.front());
    peer.waiting.pop_front();
    if (peer.lanes == 0) peer.stalled_at_ns = now_ns + kStalledNs;
    peer.lanes += turn.lanes;
    peer.begun[turn.dial] = turn.lanes;
    turn.start();
  }
  reactor_->CancelTimerInLoop(peer.timer);
  if (peer.lanes == 0) {
    peers_.erase(name);
  } else if (!peer.waiting.empty()) {
    ServeAtInLoop(name, peer.stalled_at_ns);
  }
}

}  // namespace tcpx
