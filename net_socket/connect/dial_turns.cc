#include "net_socket/connect/dial_turns.h"

#include <algorithm>
#include <utility>

namespace tcpx {

void DialTurns::AwaitInLoop(const std::string& peer, uint64_t dial, int lanes, std::function<void()> start) {
  peers_[peer].waiting.push_back({dial, lanes, std::move(start)});
  ServeInLoop(peer);
}

void DialTurns::EndedInLoop(const std::string& peer, uint64_t dial) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Peer& at = found->second;
  const auto is_it = [dial](const Turn& turn) { return turn.dial == dial; };
  at.waiting.erase(std::remove_if(at.waiting.begin(), at.waiting.end(), is_it), at.waiting.end());
  const auto turn = std::find_if(at.begun.begin(), at.begun.end(), is_it);
  if (turn != at.begun.end()) {
    at.lanes -= turn->lanes;
    at.begun.erase(turn);
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
  while (!peer.begun.empty() && peer.begun.front().until_ns <= now_ns) {
    peer.lanes -= peer.begun.front().lanes;
    peer.begun.pop_front();
  }
  while (!peer.waiting.empty() && (peer.lanes == 0 || peer.lanes + peer.waiting.front().lanes <= kLanesAtOnce)) {
    Turn turn = std::move(peer.waiting.front());
    peer.waiting.pop_front();
    const std::function<void()> start = std::move(turn.start);
    turn.until_ns = now_ns + kTurnNs;
    peer.lanes += turn.lanes;
    peer.begun.push_back(std::move(turn));
    start();
  }
  reactor_->CancelTimerInLoop(peer.timer);
  if (peer.begun.empty()) {
    peers_.erase(name);
  } else {
    ServeAtInLoop(name, peer.begun.front().until_ns);
  }
}

void DialTurns::CloseInLoop() {
  for (auto& [name, peer] : peers_) reactor_->CancelTimerInLoop(peer.timer);
  peers_.clear();
}

}  // namespace tcpx
