// health_hub.h: all health sockets of the process, by whom they lead to.
//
// Purpose: connections between the same two processes and devices find the socket that they share, and those that the
//          peer dialled are found by its tag.
// Threads: InLoop: in the reactor; the rest before the first socket.
// Lifetime: borrows the reactor, and outlives its sockets.
// Units:   nanoseconds.
// Errors:  none of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/address.h"
#include "common/clock_notes.h"
#include "common/log.h"
#include "net_socket/health/health_peer.h"

namespace tcpx {

class HealthHub {
 public:
  explicit HealthHub(Reactor* reactor) : reactor_(reactor) {}

  // What `device` and the listening socket at `peer` share; made, and not up, where there is none. Used once more.
  std::shared_ptr<HealthPeer> UseDialledInLoop(int device, const SocketAddress& peer);
  // Null where the peer has not dialled it (yet).
  std::shared_ptr<HealthPeer> FindAcceptedInLoop(uint64_t tag) {
    const auto found = accepted_.find(tag);
    return found == accepted_.end() ? nullptr : found->second;
  }
  // One whose end has come is forgotten at once, before its event.
  void LookInLoop(uint64_t tag) {
    if (const auto health = FindAcceptedInLoop(tag)) health->OnEvents(0);
  }
  void AcceptInLoop(uint64_t tag, OwnedFd fd, const HealthSettings& settings, Seals seals = Seals());
  // It is about to be accepted once more, if it is there.
  void LetGoInLoop(uint64_t tag) {
    const std::shared_ptr<HealthPeer> health = FindAcceptedInLoop(tag);
    if (health != nullptr && health->socket().heals()) health->LetGoInLoop();
  }
  void ForgetInLoop(HealthPeer* health);
  // Closes the accepted socket of `tag`, which is new, after `after_ns` if no connection uses it then; the same each
  // time that its last use ends, from then on. One timer a socket, which ends with it: a stranger who dials again and
  // again leaves no timers.
  void DropUnusedLaterInLoop(uint64_t tag, int64_t after_ns);
  // From here on `died` hears of each accepted socket whose stream has ended without a bye, as that of a process that
  // dies; a reset says nothing of processes. `waits`: for another one.
  using Died = std::function<void(uint64_t tag, bool waits)>;
  void ReportDeathsTo(Died died) { died_ = std::move(died); }
  void DiedInLoop(const HealthPeer& health, bool waits) {
    if (died_ != nullptr) died_(health.tag(), waits);
  }
  // One that was accepted has its first use, or has lost its last.
  void UsedInLoop(const HealthPeer& health);
  // Accepted ones that no connection uses.
  int64_t unused_in_loop() const { return unused_; }
  // Another socket of the same peer process is up.
  bool AnotherIsUpInLoop(HealthPeer* health);
  // Of all lines about peers whom nobody knows yet: with a ticket they may come again and again.
  LineLimit* stranger_lines() { return &stranger_lines_; }
  // A socket of the peer's process is up, as far as is known just now: this one, a lane, or one between other devices.
  bool ProcessIsUpInLoop(HealthPeer* health);
  // Before the first socket: clocks are measured, for a timeline.
  void MeasureClocks() { clock_notes_ = std::make_unique<ClockNotes>(); }
  // Null: they are not.
  ClockNotes* clock_notes() const { return clock_notes_.get(); }
  // Says bye on every socket and closes it.
  void CloseInLoop();

 private:
  using Key = std::pair<int, std::string>;

  std::shared_ptr<HealthPeer> MakeInLoop(uint64_t tag, bool dialled);

  Reactor* const reactor_;
  std::unique_ptr<ClockNotes> clock_notes_;
  absl::flat_hash_map<Key, std::shared_ptr<HealthPeer>> dialled_;
  absl::flat_hash_map<const HealthPeer*, Key> keys_;  // of dialled_
  absl::flat_hash_map<uint64_t, std::shared_ptr<HealthPeer>> accepted_;
  absl::flat_hash_map<uint64_t, Reactor::TimerId> drops_;  // of accepted ones, by tag
  // All of both by WaitExchange::process: to ask for one process costs as much with 4,000 others as with none. A
  // process that has said it since the latest question is under "" still.
  absl::flat_hash_map<std::string, absl::flat_hash_set<HealthPeer*>> by_process_;
  int64_t unused_ = 0;       // of accepted_
  int64_t patience_ns_ = 0;  // with an unused one; 0: nobody has said
  Died died_;
  LineLimit stranger_lines_;
};

}  // namespace tcpx
