// Every life that two lanes may have, up to a number of steps: two ends, and a network that delays, resets or swallows
// any socket at any moment, a dialler that comes late, a peer that closes or vanishes. Lanes' states, the frames that
// are held, the striper, and the arbiter of who is gone are the code that ships; sockets are strings.
//
// In every state that is reached: the peer gets each byte of a lane's stream once, in order, and as it was first sent;
// a request is done only when the peer's kernel has its bytes; and from there on, once the network behaves, all arrives
// and nothing is left over, or the sender knows that its peer has left. The arbiter's stuck sockets are those
// that have moved no byte; the receiver's counts none, finds nothing final while a lane is up, and has nothing to say
// once all is well. What is final in time is arbiter_explorer_test's.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "net_socket/comm/lane_table.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/message/units.h"
#include "net_socket/send/chunk_header.h"
#include "net_socket/send/held_frames.h"
#include "net_socket/send/stripe.h"

namespace tcpx {
namespace {

constexpr int kLanes = 2;
constexpr int kMessages = 3;
constexpr size_t kMessageBytes = 128;  // one cut: a message is one chunk
constexpr size_t kStepBytes = 160;     // of the network: less than a frame, and no part of it
constexpr size_t kHeldMax = 2;         // so that lanes run out of room

// A socket of a lane, both its ends. What was not read of a dead one is lost, but for what the receiver's kernel has.
struct Socket {
  bool dead = false;
  std::string in_flight;  // the sender's kernel has it, without an acknowledgement
  std::string in_kernel;  // the receiver's has acknowledged it
};

// A sender's lane, its receiver's end, and what the network does to it.
struct Lane {
  HeldFrames held{kHeldMax, 0};
  Socket socket;
  bool lost = false;      // what moves the sender's lane knows that the socket is dead
  std::string stream;     // what was ever begun
  std::string received;   // what the receiver has taken
  bool dialling = false;  // the sender dials
  bool answered = false;  // the receiver has another socket, and has said how much it has
  uint64_t position = 0;  // of that answer
  Socket next;            // the sender does not know it yet
  uint64_t had = 0;       // by the peer, when the lane last got a socket
  int stuck = 0;          // sockets in a row since that has moved, with something to send again
};

enum class Step {
  kSend,      // the lane pulls a chunk
  kCarry,     // the network brings some bytes
  kLook,      // the sender looks at what was acknowledged
  kRead,      // the receiver reads
  kReset,     // the network ends the newest socket
  kSeeLoss,   // the sender's lane finds its socket dead
  kPeerSees,  // the receiver does
  kLetGo,     // nothing is acknowledged: the sender lets the socket go, and dials
  kDial,      // the receiver takes the new socket
  kAnswer,    // the sender takes it
  kClose,     // the receiver closes
  kVanish,    // the receiver's process ends
};
constexpr int kSteps = 12;
constexpr const char* kNames[kSteps] = {"send",      "carry",  "look", "read",   "reset", "see loss",
                                        "peer sees", "let go", "dial", "answer", "close", "vanish"};

struct Move {
  Step step;
  int lane;

  std::string ToString() const { return absl::StrCat(kNames[static_cast<int>(step)], " ", lane); }
};

class World {
 public:
  World() {
    for (int i = 0; i < kMessages; ++i) {
      payloads_[static_cast<size_t>(i)].assign(kMessageBytes, static_cast<char>('a' + i));
      SendRequest& request = requests_[static_cast<size_t>(i)];
      request.data = payloads_[static_cast<size_t>(i)].data();
      request.bytes = request.message_bytes = kMessageBytes;
      request.sequence = static_cast<uint64_t>(i);
      request.left.store(Units(kMessageBytes));
      striper_.Post(&request);
    }
  }

  // False: that can't happen now.
  bool Do(const Move& move) {
    Lane& lane = lanes_[static_cast<size_t>(move.lane)];
    const int index = move.lane;
    switch (move.step) {
      case Step::kSend:
        return Send(&lane);
      case Step::kCarry: {
        Socket& socket = lane.socket;
        if (socket.dead || gone_ || socket.in_flight.empty()) return false;
        const size_t bytes = std::min(kStepBytes, socket.in_flight.size());
        socket.in_kernel += socket.in_flight.substr(0, bytes);
        socket.in_flight.erase(0, bytes);
        return true;
      }
      case Step::kLook:
        if (lane.lost || lane.socket.dead || lane.held.empty()) return false;
        lane.held.Acked(static_cast<int64_t>(lane.socket.in_flight.size()));
        return true;
      case Step::kRead:
        if (gone_ || lane.answered || lane.socket.in_kernel.empty()) return false;
        lane.received += std::exchange(lane.socket.in_kernel, std::string());
        return true;
      case Step::kReset: {
        Socket& socket = lane.answered ? lane.next : lane.socket;
        if (socket.dead) return false;
        socket.dead = true;
        socket.in_flight.clear();
        if (lane.answered) lane.answered = false;  // The dial has failed, and is made again.
        return true;
      }
      case Step::kSeeLoss:
        if (lane.lost || !lane.socket.dead || over()) return false;
        lane.lost = true;
        return Lose(index, LaneTable::Why::kDied);
      case Step::kPeerSees:
        if (gone_ || !lane.socket.dead || !receiver_.up(index)) return false;
        if (receiver_.Lose(index, LaneTable::Why::kDied, ++clock_) == LaneTable::Loss::kNoted) {
          receivers_.Lost(index, Arbiter::Loss::kDied);
        }
        return true;
      case Step::kLetGo:
        if (over() || !sender_.up(index) || lane.socket.in_flight.empty()) return false;
        return Lose(index, LaneTable::Why::kLetGo);
      case Step::kDial:
        if (!lane.dialling || lane.answered || gone_) return false;
        // What has come is read, and the old socket is let go before the count is sent.
        lane.received += std::exchange(lane.socket.in_kernel, std::string());
        lane.socket.dead = true;
        lane.socket.in_flight.clear();
        receiver_.Back(index);
        (void)receiver_.TakeOpened(index);
        lane.next = Socket();
        lane.position = lane.received.size();
        lane.answered = true;
        receivers_.Back(index, {lane.position, false}, ++clock_);
        return true;
      case Step::kAnswer:
        return TakeAnswer(index, &lane);
      case Step::kClose:
      case Step::kVanish:
        if (index != 0 || gone_) return false;
        gone_ = true;
        Leave(move.step == Step::kClose);
        return true;
    }
    return false;
  }

  // What is wrong; empty: nothing.
  std::string Wrong() const {
    if (broken_) return "the sender can't go on where the peer says";
    for (int i = 0; i < kLanes; ++i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      const std::string socket = lane.received + lane.socket.in_kernel + lane.socket.in_flight;
      if (!lane.answered && lane.stream.compare(0, socket.size(), socket) != 0) {
        return absl::StrCat("lane ", i, ": what is read, or on its way, is not the stream");
      }
      if (lane.stream.compare(0, lane.received.size(), lane.received) != 0) {
        return absl::StrCat("lane ", i, ": the peer has other bytes than were sent");
      }
      if (lane.held.acked() > lane.received.size() + lane.socket.in_kernel.size()) {
        return absl::StrCat("lane ", i, ": more counts as acknowledged than the peer has");
      }
      if (sender_.lost(i) && !lane.dialling && !over()) return absl::StrCat("lane ", i, ": nobody dials it");
    }
    for (int i = 0; i < kLanes; ++i) {
      if (arbiter_.stuck_sockets(i) != lanes_[static_cast<size_t>(i)].stuck) {
        return absl::StrCat("lane ", i, ": ", arbiter_.stuck_sockets(i), " sockets count as vain");
      }
      if (receivers_.stuck_sockets(i) > 0)
        return absl::StrCat("lane ", i, ": the receiver, who dials none, counts sockets");
    }
    if (receivers_.stuck() != Stuck::kNone || receivers_.Unsettled(clock_))
      return "the receiver waits for what it sends";
    if (receivers_.Overdue(receiver_.none_since_ns(), clock_)) return "the receiver gives up at once";
    for (const SendRequest& request : requests_) {
      if (request.done() && !Arrived(request))
        return absl::StrCat("message ", uint64_t{request.sequence}, " is done too early");
    }
    return "";
  }

  // The network behaves from here on: everything that can happen does, until nothing can.
  std::string Finish() {
    for (int round = 0; round < 100; ++round) {
      bool moved = false;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (const Step step : {Step::kSeeLoss, Step::kPeerSees, Step::kDial, Step::kAnswer, Step::kSend, Step::kCarry,
                                Step::kRead, Step::kLook}) {
          const bool looks = step == Step::kLook;
          moved = (Do({step, lane}) && !looks) || moved;
          const std::string wrong = Wrong();
          if (!wrong.empty()) return wrong;
        }
      }
      if (!moved) break;
    }
    if (gone_) return over() ? "" : "the sender does not know that its peer has left";
    for (const SendRequest& request : requests_) {
      if (!request.done()) return absl::StrCat("message ", uint64_t{request.sequence}, " never arrives");
    }
    for (int i = 0; i < kLanes; ++i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      if (!lane.held.empty() || lane.dialling || !sender_.up(i)) return absl::StrCat("lane ", i, " is not as it was");
      if (lane.received != lane.stream) return absl::StrCat("lane ", i, ": not all of the stream has come");
      for (int look = 0; look < 2; ++look) arbiter_.LookAtIdle(i, ++clock_);
      if (arbiter_.stuck_sockets(i) > 0) return absl::StrCat("lane ", i, ": all has come, and sockets count as vain");
      for (int look = 0; look < 2; ++look) receivers_.LookAtIdle(i, ++clock_);
    }
    if (arbiter_.Warns(clock_).lane >= 0 || receivers_.Warns(clock_).lane >= 0)
      return "all is well, and there is a WARN";
    const ConnectionCounts tally = sender_.tally();
    if (tally.lost + tally.moved != tally.resumed) return "not every lane that was lost was resumed, once";
    return "";
  }

  // Equal for worlds that can't be distinguished.
  std::string Digest() const {
    std::string digest = absl::StrCat(gone_, over(), striper_.left_bytes(), ";");
    for (int i = 0; i < kLanes; ++i) {
      const Lane& lane = lanes_[static_cast<size_t>(i)];
      absl::StrAppend(&digest, static_cast<int>(sender_.state(i)), static_cast<int>(receiver_.state(i)), ",",
                      lane.stream.size(), ",", lane.received.size(), ",", lane.socket.in_flight.size(), ",",
                      lane.socket.in_kernel.size(), ",", lane.socket.dead, lane.lost, lane.dialling, lane.answered, ",",
                      lane.held.acked(), ",", lane.held.cursor(), ",", lane.held.room(), ",", lane.stuck, ";");
    }
    for (const SendRequest& request : requests_) absl::StrAppend(&digest, request.done());
    return digest;
  }

 private:
  bool over() const { return !sender_.heals(); }

  bool Send(Lane* lane) {
    if (lane->lost || over()) return false;
    HeldFrames& held = lane->held;
    if (held.resending()) {
      iovec iov[8];
      const int count = held.GatherAgain(iov, 8);
      size_t bytes = 0;
      for (int i = 0; i < count; ++i) {
        Give(lane, static_cast<const char*>(iov[i].iov_base), iov[i].iov_len);
        bytes += iov[i].iov_len;
      }
      held.SentAgain(bytes);
      return true;
    }
    Chunk chunk;
    if (held.room() == 0 || !striper_.Pull(kMessageBytes, 1, kMessageBytes, &chunk)) return false;
    char header[kHeaderBytes];
    EncodeChunkHeader(*chunk.request, chunk.offset, chunk.length, 0, header);
    const char* const payload = chunk.request->data + chunk.offset;
    held.Begin(header, {payload, chunk.length, 0}, chunk.request);
    chunk_ends_[uint64_t{chunk.request->sequence}] = {lane, lane->stream.size() + kHeaderBytes + chunk.length};
    lane->stream.append(header, kHeaderBytes);
    lane->stream.append(payload, chunk.length);
    Give(lane, header, kHeaderBytes);
    Give(lane, payload, chunk.length);
    held.Sent(kHeaderBytes + chunk.length);
    return true;
  }

  // To the socket, which may be dead without anybody knowing.
  static void Give(Lane* lane, const char* data, size_t bytes) {
    if (!lane->socket.dead) lane->socket.in_flight.append(data, bytes);
  }

  bool Lose(int index, LaneTable::Why why) {
    const LaneTable::Loss loss = sender_.Lose(index, why, ++clock_);
    if (loss == LaneTable::Loss::kNoted) {
      lanes_[static_cast<size_t>(index)].dialling = true;
      arbiter_.Lost(index, why == LaneTable::Why::kDied ? Arbiter::Loss::kDied : Arbiter::Loss::kSilent);
    }
    return loss != LaneTable::Loss::kRefused;
  }

  bool TakeAnswer(int index, Lane* lane) {
    if (!lane->answered || over()) return false;
    if (!lane->held.Rewind(lane->position)) broken_ = true;
    lane->socket = std::exchange(lane->next, Socket());
    lane->answered = lane->dialling = lane->lost = false;
    sender_.Back(index);
    (void)sender_.TakeOpened(index);
    const bool owes = lane->held.resending();
    lane->stuck = owes && lane->position == lane->had ? lane->stuck + 1 : 0;
    lane->had = lane->position;
    arbiter_.Back(index, {lane->position, owes}, ++clock_);
    return true;
  }

  // The word that the receiver has left, with what it has taken, or without.
  void Leave(bool tells) {
    std::vector<uint64_t> taken;
    for (Lane& lane : lanes_) {
      taken.push_back(lane.received.size());
      lane.answered = lane.dialling = false;
    }
    (void)sender_.PeerLeft(tells ? taken : std::vector<uint64_t>());
    receiver_.End();
    for (size_t i = 0; tells && i < taken.size(); ++i) (void)lanes_[i].held.PeerTook(taken[i]);
  }

  bool Arrived(const SendRequest& request) const {
    const auto& [lane, end] = chunk_ends_[uint64_t{request.sequence}];
    return lane != nullptr && lane->received.size() + lane->socket.in_kernel.size() >= end;
  }

  LaneTable sender_{Direction::kSend, std::vector<bool>(kLanes, true)};
  LaneTable receiver_{Direction::kReceive, std::vector<bool>(kLanes, true)};
  Arbiter arbiter_{kLanes, 1000, 1000};    // the sender's
  Arbiter receivers_{kLanes, 1000, 1000};  // it owes nothing
  Striper striper_{4, {kMessageBytes, kMessageBytes}};
  std::array<std::string, kMessages> payloads_;
  std::array<SendRequest, kMessages> requests_;
  std::array<Lane, kLanes> lanes_;
  std::array<std::pair<const Lane*, size_t>, kMessages> chunk_ends_{};  // by message: where its frame ends, on its lane
  int64_t clock_ = 0;
  bool gone_ = false;
  bool broken_ = false;
};

std::string Told(const std::vector<Move>& path) {
  return absl::StrJoin(path, ", ", [](std::string* out, const Move& move) { out->append(move.ToString()); });
}

// A world can't be copied: each state is reached anew, by the steps that led there.
TEST(LaneLifeExplorerTest, EveryLifeEndsWell) {
  const size_t depth = getenv("TCPX_TEST_LONG") == nullptr ? 9 : 11;
  std::deque<std::vector<Move>> open = {{}};
  std::unordered_set<std::string> seen;
  size_t lives = 0;
  while (!open.empty()) {
    const std::vector<Move> path = std::move(open.front());
    open.pop_front();
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int step = 0; step < kSteps; ++step) {
        World world;
        for (const Move& move : path) ASSERT_TRUE(world.Do(move)) << Told(path);
        std::vector<Move> next = path;
        next.push_back({static_cast<Step>(step), lane});
        if (!world.Do(next.back())) continue;
        ASSERT_EQ("", world.Wrong()) << Told(next);
        if (!seen.insert(world.Digest()).second) continue;
        ++lives;
        if (next.size() < depth) open.push_back(next);
        ASSERT_EQ("", world.Finish()) << "after " << Told(next);
      }
    }
  }
  printf("%zu states within %zu steps\n", lives, depth);
  EXPECT_GT(lives, 1000u);
}

}  // namespace
}  // namespace tcpx
