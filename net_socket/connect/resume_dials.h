// resume_dials.h: dials for the lanes of one connection that have lost their socket, are to have another, or are opened
//          late.
//
// Purpose: the hello names connection, lane and attempt, and is proven like the first one; the answer says where the
//          stream goes on.
// Paths:   A lane is dialled by the path that it has and, where that brings nothing within a moment, by another one
//          too; the one that finds the peer first is used. If an interface is out, its lanes use another one at once. A
//          lane that uses another path than its own returns when that works again (nic/lost_paths.h); until then it
//          keeps its socket.
// Threads: made anywhere; the rest as Redialler.
// States:  a lane: dialling -> offered to its connection -> over.
// Units:   nanoseconds.
// Errors:  LaneGone: where the arbiter (health/arbiter.h) takes a refusal for the end of the peer's process, or no lane
//          has been up for TCPX_RECONNECT_TIMEOUT; at once where that process knows the connection no more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net_socket/comm/redialler.h"
#include "net_socket/connect/dial_lane.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/lost_paths.h"

namespace tcpx {

// By the same interface to the same address.
inline bool SamePath(const LanePath& one, const LanePath& other) {
  return one.nic == other.nic && one.peer == other.peer;
}

// Which path each lane of a connection has, its own or another's, and where it may go instead. Pure.
class LanePaths {
 public:
  using Serves = std::function<bool(const LanePath& path)>;
  using Carries = std::function<bool(int lane)>;

  // The first `open` lanes are; the others are only places.
  LanePaths(std::vector<LanePath> own, int open)
      : own_(own), at_(std::move(own)), open_(static_cast<size_t>(open), true) {
    open_.resize(own_.size());
  }

  int lanes() const { return static_cast<int>(own_.size()); }
  const LanePath& own(int lane) const { return own_[static_cast<size_t>(lane)]; }
  const LanePath& at(int lane) const { return at_[static_cast<size_t>(lane)]; }
  bool away(int lane) const { return !SamePath(own(lane), at(lane)); }
  // It is open from here on.
  void Place(int lane, const LanePath& path) {
    at_[static_cast<size_t>(lane)] = path;
    open_[static_cast<size_t>(lane)] = true;
  }
  // It goes nowhere, and will begin with its own path again.
  void Close(int lane) {
    at_[static_cast<size_t>(lane)] = own(lane);
    open_[static_cast<size_t>(lane)] = false;
  }

  // Another path than `taken`, of those that serve: one by which a lane goes that carries, with the fewest lanes; else
  // any that is some lane's own. The `turn`-th of them, round and round; null: there is none.
  const LanePath* Other(const LanePath& taken, int turn, const Serves& serves, const Carries& carries) const;

 private:
  const std::vector<LanePath> own_;
  std::vector<LanePath> at_;
  std::vector<bool> open_;
};

class ResumeDials final : public Redialler, private LostPaths::User {
 public:
  // `paths` by lane; the first lanes were dialled by `setup`.
  ResumeDials(const DialSetup& setup, std::shared_ptr<HealthPeer> health, std::vector<LanePath> paths);
  ~ResumeDials() override;

  void StartInLoop(Link<SenderHealing> lanes, Link<SocketTaker> taker) override;
  void RedialInLoop(int lane, uint32_t records_taken) override { DialInLoop(lane, Why::kLost, records_taken); }
  void TryBesideInLoop(int lane) override;
  void OpenInLoop(int lane) override { DialInLoop(lane, Why::kOpens, 0); }
  void ClosedInLoop(int lane) override;
  uint64_t dialled() const override { return dialled_.load(std::memory_order_relaxed); }
  void CloseInLoop() override;

 private:
  class Dial;
  enum class Why { kLost, kSilent, kReturns, kOpens };

  void NicsChangedInLoop() override;
  bool TryPathInLoop(const LanePath& path) override { return ReturnInLoop(path, 1); }
  void PathServesInLoop(const LanePath& path) override { (void)ReturnInLoop(path, paths_.lanes()); }
  // Dials `most` of the lanes back to this path, which is their own. False: none waits for that.
  bool ReturnInLoop(const LanePath& path, int most);
  bool Serves(const LanePath& path) const { return !dialling_.runtime->lost_paths->OutInLoop(*path.nic); }
  // Another path for `lane` than `taken`.
  const LanePath* OtherPath(int lane, const LanePath& taken, int turn) const;
  void DialInLoop(int lane, Why why, uint32_t records_taken);
  void EndDialInLoop(int lane);

  const DialSetup dialling_;
  const std::shared_ptr<HealthPeer> health_;
  LanePaths paths_;
  Link<SenderHealing> lanes_;
  Link<SocketTaker> taker_;
  std::vector<uint32_t> attempts_;  // so far, by lane
  std::atomic<uint64_t> dialled_{0};
  absl::flat_hash_map<int, std::unique_ptr<Dial>> dials_;  // by lane
};

}  // namespace tcpx
