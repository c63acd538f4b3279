#include "net_socket/connect/key_turns.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace tcpx {

PeerSource SourceOf(const SocketAddress& from) {
  char encoded[SocketAddress::kEncodedBytes];
  from.Encode(encoded);
  PeerSource source;
  std::memcpy(source.data(), encoded + 8, source.size());
  // A stranger with one address of an IPv6 network has all of them. Link-local ones share only a prefix.
  if (from.family() == AF_INET6 && !from.IsLinkLocal()) std::fill(source.begin() + 8, source.end(), uint8_t{0});
  return source;
}

void KeyTurns::AwaitInLoop(const PeerSource& source, Waiter* waiter) {
  std::deque<Waiter*>& row = waiting_[source];
  if (row.empty()) circle_.push_back(source);
  row.push_back(waiter);
  ServeLater();
}

void KeyTurns::GiveUpInLoop(const PeerSource& source, Waiter* waiter) {
  const auto row = waiting_.find(source);
  if (row == waiting_.end()) return;
  // Mostly the oldest, which makes room for others.
  row->second.erase(std::find(row->second.begin(), row->second.end(), waiter));
  if (!row->second.empty()) return;
  waiting_.erase(row);
  circle_.erase(std::find(circle_.begin(), circle_.end(), source));
}

void KeyTurns::ServeInLoop() {
  serves_ = false;
  const int64_t until_ns = MonotonicNanos() + kTurnNs;
  while (!circle_.empty() && MonotonicNanos() < until_ns) {
    const PeerSource source = circle_.front();
    circle_.pop_front();
    const auto row = waiting_.find(source);
    Waiter* const waiter = row->second.front();
    row->second.pop_front();
    if (row->second.empty()) {
      waiting_.erase(row);
    } else {
      circle_.push_back(source);
    }
    waiter->KeyTurnInLoop();
  }
  if (!circle_.empty()) ServeLater();
}

}  // namespace tcpx
