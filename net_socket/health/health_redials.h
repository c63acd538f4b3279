// health_redials.h: who dials a health socket: at first one of the dials that need it, for all of them; again, where it
// is lost, one of its connections, or the last that has left.
//
// Threads: the reactor.
// Lifetime: borrows the socket; a waiter gives up before it goes.
// Units:   nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/health/health_socket.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class HealthPeer;

class HealthWaiters {
 public:
  class Waiter {
   public:
    // It is this waiter's turn to dial the socket.
    virtual void DialHealthInLoop() = 0;
    virtual void HealthUpInLoop() = 0;

   protected:
    ~Waiter() = default;
  };

  explicit HealthWaiters(const HealthSocket* socket) : socket_(socket) {}

  // The socket is up at once, or one waiter dials it and the others wait.
  void AwaitInLoop(Waiter* waiter) {
    const HealthState state = socket_->state();
    if (state == HealthState::kUp) return waiter->HealthUpInLoop();
    waiters_.push_back(waiter);
    if (state != HealthState::kLost) DialInLoop();
  }
  void GiveUpInLoop(Waiter* waiter) {
    waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), waiter), waiters_.end());
    if (dialler_ != waiter) return;
    dialler_ = nullptr;
    DialInLoop();
  }
  // The socket is up.
  void NotifyInLoop() {
    dialler_ = nullptr;
    for (Waiter* waiter : std::exchange(waiters_, {})) waiter->HealthUpInLoop();
  }
  // It is not, and nobody is known to dial it.
  void DialInLoop() {
    if (waiters_.empty() || dialler_ != nullptr) return;
    dialler_ = waiters_.front();
    dialler_->DialHealthInLoop();
  }

 private:
  const HealthSocket* const socket_;
  Waiter* dialler_ = nullptr;  // who dials it now
  std::deque<Waiter*> waiters_;
};

// Dials a health socket again, in the name of one connection.
class HealthRedialler {
 public:
  virtual ~HealthRedialler() = default;
  // Dials until it ends in UpInLoop, RefusedInLoop or GoneInLoop of the peer, or in HaltInLoop. Nothing where it dials
  // already.
  virtual void DialInLoop(std::shared_ptr<HealthPeer> health) = 0;
  virtual void HaltInLoop() = 0;
};

class HealthRedials {
 public:
  // `redialler` null: its health socket does not heal, or this is the end that does not dial.
  void Join(const ConnectionId& id, std::shared_ptr<HealthRedialler> redialler) {
    if (redialler != nullptr) all_[id] = std::move(redialler);
  }
  void Leave(const ConnectionId& id) {
    const auto found = all_.find(id);
    if (found == all_.end()) return;
    last_to_leave_ = std::move(found->second);
    all_.erase(found);
  }
  bool any() const { return last_to_leave_ != nullptr || !all_.empty(); }
  // False: there is nobody.
  bool DialInLoop(std::shared_ptr<HealthPeer> health) {
    if (dials_ == nullptr) dials_ = all_.empty() ? last_to_leave_ : all_.begin()->second;
    if (dials_ == nullptr) return false;
    dials_->DialInLoop(std::move(health));
    return true;
  }
  void HaltInLoop() {
    if (const auto halted = std::exchange(dials_, nullptr)) halted->HaltInLoop();
  }
  // It dials just now.
  bool Dials(const HealthRedialler* redialler) const { return dials_.get() == redialler; }
  // Decides of the health socket as of a lane 0: when it is dialled, what refusals mean, what the log gets.
  Arbiter& arbiter() { return arbiter_; }
  // The peer knows its connection no more: it is not asked again. The connections, if they are still here.
  std::vector<ConnectionId> Refuse(const HealthRedialler* redialler) {
    std::vector<ConnectionId> refused;
    for (const auto& [id, one] : all_) {
      if (one.get() == redialler) refused.push_back(id);
    }
    for (const ConnectionId& id : refused) all_.erase(id);
    if (last_to_leave_.get() == redialler) last_to_leave_ = nullptr;
    return refused;
  }

 private:
  absl::flat_hash_map<ConnectionId, std::shared_ptr<HealthRedialler>> all_;
  std::shared_ptr<HealthRedialler> dials_;  // just now
  std::shared_ptr<HealthRedialler> last_to_leave_;
  Arbiter arbiter_{1, 0, 0};  // HealthPeer knows how long it may be silent, or lost
};

}  // namespace tcpx
