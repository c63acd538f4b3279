// Every life that two lanes and a health socket may have before the arbiter, up to a number of steps, with the time
// that passes: a network that resets, silences and refuses, a peer that reads nothing for long or vanishes.
//
// In every state that is reached: nothing is final of a peer that has a socket up and moves, or answers that its window
// is shut; and a lane that has work and moves nothing for the whole timeout is reported.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/health/tuning.h"
#include "tests/unit/net_socket/health/arbiter_lanes.h"

namespace tcpx {
namespace {

constexpr int kLanes = 2;
constexpr int64_t kSilenceNs = 3 * kSecond;
constexpr int64_t kAloneTimeNs = 5 * kSecond;
constexpr int64_t kSlackNs = 2 * tuning::kLookNs;  // a look may come just before, and the first one begins the count
constexpr int kLooksOfATick = 6;                   // half of the timeout

enum class Step {
  kWork,        // the lane is given something to send
  kMove,        // some of it is acknowledged
  kDone,        // all of it
  kShut,        // the peer reads no more
  kRead,        // it reads again
  kReset,       // the socket is reset
  kSilent,      // nothing is acknowledged, and it is let go
  kOther,       // it is moved on purpose
  kBack,        // another socket
  kTick,        // half of the timeout
  kRefuse,      // the network refuses new connections
  kLetThrough,  // no more
  kHealthLost,
  kHealthBack,
  kVanish,  // the peer's process ends
};
constexpr int kSteps = 15;
constexpr const char* kNames[kSteps] = {"work",   "move",        "done",        "shut",        "read",
                                        "reset",  "silent",      "other",       "back",        "tick",
                                        "refuse", "let through", "health lost", "health back", "vanish"};

struct Move {
  Step step;
  int lane;

  std::string ToString() const { return absl::StrCat(kNames[static_cast<int>(step)], " ", lane); }
};

struct Lane {
  bool up = true;
  bool work = false;
  bool shut = false;
  uint64_t position = 0;  // of what the peer has
  uint64_t told = 0;      // of that, when the lane last got a socket
  uint64_t acked = 100;   // on the socket
  int64_t moved_ns = 0;   // when anything last moved, or the peer said that it waits, or the work began
  int64_t back_ns = 0;    // the latest socket
  int64_t known_ns = 0;   // the same, as it may be known at the latest
};

class World {
 public:
  // False: that can't happen now.
  bool Do(const Move& move) {
    if (over_) return false;
    Lane* const lane = &lanes_[static_cast<size_t>(move.lane)];
    switch (move.step) {
      case Step::kTick:
        if (move.lane != 0) return false;
        for (int i = 0; i < kLooksOfATick && wrong_.empty() && !over_; ++i) LookAtAll();
        return true;
      case Step::kRefuse:
      case Step::kLetThrough:
        return move.lane == 0 && std::exchange(refuses_, move.step == Step::kRefuse) != refuses_;
      case Step::kHealthLost:
      case Step::kHealthBack:
        return move.lane == 0 && alive_ && std::exchange(health_, move.step == Step::kHealthBack) != health_;
      case Step::kVanish:
        if (move.lane != 0 || !alive_) return false;
        alive_ = health_ = false;
        for (int i = 0; i < kLanes; ++i) Lose(i, Arbiter::Loss::kDied);
        return true;
      default:
        return alive_ && DoLane(move, lane);
    }
  }

  const std::string& Wrong() const { return wrong_; }

  // Equal for worlds that behave alike.
  std::string Digest() const {
    std::string digest =
        absl::StrCat(over_, alive_, health_, refuses_, ";", refused_ns_ == 0 ? 0 : now_ns_ - refused_ns_);
    for (int i = 0; i < kLanes; ++i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      absl::StrAppend(&digest, ";", lane.up, lane.work, lane.shut, lane.position == lane.told, ",",
                      lane.work ? now_ns_ - lane.moved_ns : 0, ",", lane.work ? now_ns_ - lane.known_ns : 0, ",",
                      std::min(now_ns_ - lane.back_ns, 2 * kSilenceNs), ",", arbiter_.stuck_sockets(i));
    }
    return digest;
  }

 private:
  bool DoLane(const Move& move, Lane* lane) {
    const bool sends = lane->up && lane->work && !lane->shut;
    switch (move.step) {
      case Step::kWork:
        if (std::exchange(lane->work, true)) return false;
        lane->moved_ns = lane->known_ns = now_ns_;
        return true;
      case Step::kMove:
      case Step::kDone:
        if (!sends) return false;
        Moves(lane);
        lane->work = move.step == Step::kMove;
        return true;
      case Step::kShut:
        if (!sends) return false;
        lane->shut = true;
        return true;
      case Step::kRead:
        if (!std::exchange(lane->shut, false)) return false;
        Moves(lane);
        return true;
      case Step::kReset:
        return Lose(move.lane, Arbiter::Loss::kDied);
      case Step::kSilent:
        return sends && Lose(move.lane, Arbiter::Loss::kSilent);
      case Step::kOther:
        return Lose(move.lane, Arbiter::Loss::kOther);
      case Step::kBack:
        return !lane->up && !refuses_ && Back(move.lane, lane);
      default:
        return false;
    }
  }

  void Moves(Lane* lane) {
    lane->acked += 10;
    lane->position += 10;
    lane->moved_ns = lane->known_ns = now_ns_;
  }

  bool Lose(int index, Arbiter::Loss how) {
    Lane& lane = lanes_[static_cast<size_t>(index)];
    if (!std::exchange(lane.up, false)) return false;
    lane.shut = false;
    LaneTcpInfo info = Holding(lane.acked);
    if (!lane.work) info.held_bytes = 0;
    arbiter_.Acked(index, info, now_ns_);
    arbiter_.Lost(index, how);
    return true;
  }

  bool Back(int index, Lane* lane) {
    lane->up = true;
    lane->acked = 50;
    lane->back_ns = now_ns_;
    if (std::exchange(lane->told, lane->position) != lane->position) lane->known_ns = now_ns_;
    arbiter_.Back(index, {lane->position, lane->work, lane->acked}, now_ns_);
    return true;
  }

  bool AnyUp() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.up; });
  }

  void LookAtAll() {
    now_ns_ += tuning::kLookNs;
    for (int i = 0; i < kLanes && !over_; ++i) LookAt(i, &lanes_[static_cast<size_t>(i)]);
    const bool dials = std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.up; });
    if (!over_ && dials && (refuses_ || !alive_)) Refuse();
    if (!dials || (!refuses_ && alive_)) refused_ns_ = 0;
  }

  void LookAt(int index, Lane* lane) {
    if (lane->shut) lane->moved_ns = lane->known_ns = now_ns_;
    const int64_t still_ns = lane->work ? now_ns_ - lane->moved_ns : 0;
    const bool alone = !AnyUp();
    bool gone = false;
    if (lane->up) {
      LaneTcpInfo info = lane->shut ? Shut() : Holding();
      info.bytes_acked = lane->acked;
      info.held_bytes = lane->work ? 5000 : 0;
      info.last_ack_ms = info.last_data_ms = static_cast<uint32_t>(still_ns / kMillisecond);
      gone = arbiter_.Look(index, info, now_ns_) == Arbiter::Finding::kStuck || arbiter_.Dead(index, info, now_ns_);
    } else {
      arbiter_.ForgetLife(index);
      arbiter_.Awaited(index, lane->work ? lane->known_ns : 0);
      gone = arbiter_.LookAtLost(index, alone, now_ns_) == Arbiter::Finding::kStuck;
    }
    if (gone && still_ns < kSilenceNs) Say(index, "is given up, and has moved ", still_ns);
    if (gone) over_ = true;
    const int64_t most_ns = lane->up || !alone ? kSilenceNs : kAloneTimeNs;
    const int64_t known_ns = std::max(lane->known_ns + most_ns, lane->up ? lane->back_ns + tuning::kOneTryNs : 0);
    if (!gone && lane->work && now_ns_ > known_ns + kSlackNs)
      Say(index, "moves nothing, and nobody knows, for ", still_ns);
  }

  // All dials are, once in each look.
  void Refuse() {
    const bool up = health_ || AnyUp();
    if (refused_ns_ == 0 || up) refused_ns_ = now_ns_;
    const bool gone = arbiter_.Refused(up, false, now_ns_);
    if (gone && up) Say(0, "is refused, and the process has a socket up, at ", now_ns_);
    if (!gone && !up && now_ns_ - refused_ns_ >= tuning::kRefusedNs)
      Say(0, "is refused, and nobody is gone, at ", now_ns_);
    if (gone) over_ = true;
  }

  void Say(int lane, const char* what, int64_t ns) { wrong_ = absl::StrCat("lane ", lane, " ", what, ns, " ns"); }

  Arbiter arbiter_{kLanes, kSilenceNs, kAloneTimeNs};
  std::array<Lane, kLanes> lanes_;
  int64_t now_ns_ = kStartNs;
  int64_t refused_ns_ = 0;  // since when all is refused, and nothing is up
  bool alive_ = true;
  bool health_ = true;
  bool refuses_ = false;
  bool over_ = false;  // something was found final
  std::string wrong_;
};

std::string Told(const std::vector<Move>& path) {
  return absl::StrJoin(path, ", ", [](std::string* out, const Move& move) { out->append(move.ToString()); });
}

TEST(ArbiterExplorerTest, NothingIsFinalTooEarlyAndNothingIsSilentForEver) {
  const size_t depth = getenv("TCPX_TEST_LONG") == nullptr ? 7 : 9;
  std::deque<std::vector<Move>> open = {{}};
  std::unordered_set<std::string> seen;
  while (!open.empty()) {
    const std::vector<Move> path = std::move(open.front());
    open.pop_front();
    for (int i = 0; i < kLanes * kSteps; ++i) {
      World world;
      for (const Move& move : path) ASSERT_TRUE(world.Do(move)) << Told(path);
      std::vector<Move> next = path;
      next.push_back({static_cast<Step>(i / kLanes), i % kLanes});
      if (!world.Do(next.back())) continue;
      ASSERT_EQ("", world.Wrong()) << Told(next);
      if (!seen.insert(world.Digest()).second) continue;
      if (next.size() < depth) open.push_back(next);
      // From here on time passes, and whatever is found then is found in time.
      for (int tick = 0; tick < 5 && world.Do({Step::kTick, 0}); ++tick) ASSERT_EQ("", world.Wrong()) << Told(next);
    }
  }
  printf("%zu states within %zu steps\n", seen.size(), depth);
  EXPECT_GT(seen.size(), 1000u);
}

}  // namespace
}  // namespace tcpx
