// Every life that two lanes may have, up to a number of steps: two ends, and a network that delays, resets or swallows
// any socket at any moment, a dialler that comes late, a peer that closes or vanishes, and an autopilot that moves,
// closes and opens one of them. Lanes' states, the frames that are held, the striper, the budget of lanes, and the
// arbiter of who is gone are the code that ships; sockets are strings.
//
// In every state that is reached: the peer gets each byte of a lane's stream once, in order, and as it was first sent;
// a request is done only when the peer's kernel has its bytes; and from there on, once the network behaves, all arrives
// and nothing is left over, or the sender knows that its peer has left. The arbiter's stuck sockets are those
// that have moved no byte; the receiver's counts none, finds nothing final while a lane is up, and has nothing to say
// once all is well. Both ends agree then on which lanes are closed, one is up, and each open lane has its part of the
// budget. What is final in time is arbiter_explorer_test's.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "net_socket/comm/lane_table.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/send/held_frames.h"
#include "net_socket/send/stripe.h"
#include "tests/support/seed.h"

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
  bool retiring = false;  // the autopilot closes it
  bool said = false;      // on its stream, that it is closed
  size_t said_end = 0;    // where the latest word of that ends
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
  kMove,      // the autopilot wants another socket for the lane
  kUnheard,   // the receiver says that what it says on the lane does not arrive
  kRetire,    // the autopilot closes the lane
  kShut,      // the lane is drained: the sender closes its socket
  kOpen,      // the autopilot opens the lane: the sender dials
};
constexpr int kSteps = 17;
constexpr int kStepsUnpiloted = 12;
constexpr const char* kNames[kSteps] = {"send",      "carry",   "look",   "read",   "reset", "see loss",
                                        "peer sees", "let go",  "dial",   "answer", "close", "vanish",
                                        "move",      "unheard", "retire", "shut",   "open"};

struct Move {
  Step step;
  int lane;

  std::string ToString() const { return absl::StrCat(kNames[static_cast<int>(step)], " ", lane); }
};

class World {
 public:
  // Lanes above `lanes` are opened later, if ever.
  explicit World(int lanes) : lanes_at_start_(lanes) {
    for (int i = 0; i < lanes; ++i) open_lanes_.Open(static_cast<size_t>(i));
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
        Read(&lane);
        return true;
      case Step::kReset: {
        Socket& socket = lane.answered ? lane.next : lane.socket;
        if (socket.dead) return false;
        socket.dead = true;
        socket.in_flight.clear();
        // The dial has failed. One for a lane that was lost is made again.
        if (std::exchange(lane.answered, false) && sender_.absent(index)) lane.dialling = false;
        return true;
      }
      case Step::kSeeLoss:
        if (lane.lost || !lane.socket.dead || sender_.absent(index) || over()) return false;
        lane.lost = true;
        return Lose(index, LaneTable::Why::kDied);
      case Step::kPeerSees:
        if (gone_ || lane.answered || !lane.socket.dead || !receiver_.up(index)) return false;
        Read(&lane);
        if (MayBeClosed(index) && receiver_.Close(index, ++clock_)) return true;
        if (receiver_.Lose(index, LaneTable::Why::kDied, ++clock_) == LaneTable::Loss::kNoted) {
          receivers_.Lost(index, Arbiter::Loss::kDied);
        }
        return true;
      case Step::kLetGo:
        if (over() || !sender_.up(index)) return false;
        if (lane.socket.in_flight.empty() && sender_.state(index) == LaneState::kUp) return false;
        return Lose(index, LaneTable::Why::kLetGo);
      case Step::kDial:
        if (!lane.dialling || lane.answered || gone_) return false;
        // What has come is read, and the old socket is let go before the count is sent.
        Read(&lane);
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
      case Step::kMove:
        return Piloted(index) && sender_.OrderMove(index);
      case Step::kUnheard:
        return Piloted(index) && sender_.state(index) != LaneState::kUnheard && sender_.NoteUnheard(index);
      case Step::kRetire:
        if (!Piloted(index) || lane.retiring || sender_.absent(index)) return false;
        sender_.CancelMove(index);
        lane.retiring = true;
        return true;
      case Step::kShut:
        if (over() || !lane.retiring || !sender_.up(index) || !lane.said || !lane.held.empty()) return false;
        if (!sender_.Close(index, ++clock_)) return false;
        lane.socket.dead = true;
        lane.lost = false;
        return true;
      case Step::kOpen:
        if (!Piloted(index) || !sender_.absent(index) || lane.dialling) return false;
        lane.retiring = false;
        lane.dialling = true;
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
                                Step::kRead, Step::kLook, Step::kShut, Step::kLetGo}) {
          // A lane that has what it needs is let go of only where it is to move.
          if (step == Step::kLetGo && !ToMove(lane)) continue;
          const size_t room = lanes_[static_cast<size_t>(lane)].held.room();
          const bool did = Do({step, lane});
          moved = moved || (step == Step::kLook ? lanes_[static_cast<size_t>(lane)].held.room() != room : did);
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
      const bool closed = i > 0 && sender_.absent(i) && receiver_.absent(i);
      if (!lane.held.empty() || lane.dialling || !(closed || (sender_.up(i) && receiver_.up(i)))) {
        return absl::StrCat("lane ", i, " is ", static_cast<int>(sender_.state(i)), " here and ",
                            static_cast<int>(receiver_.state(i)), " there");
      }
      if (lane.retiring && !closed) return absl::StrCat("lane ", i, " was to be closed, and is not");
      if (lane.received != lane.stream) return absl::StrCat("lane ", i, ": not all of the stream has come");
      for (int look = 0; look < 2; ++look) arbiter_.LookAtIdle(i, ++clock_);
      if (arbiter_.stuck_sockets(i) > 0) return absl::StrCat("lane ", i, ": all has come, and sockets count as vain");
      for (int look = 0; look < 2; ++look) receivers_.LookAtIdle(i, ++clock_);
    }
    if (arbiter_.Warns(clock_).lane >= 0 || receivers_.Warns(clock_).lane >= 0)
      return "all is well, and there is a WARN";
    if (budget_.left() != LaneBudget::kLanesMax - CountMade()) return "the budget is not what the lanes have taken";
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
                      lane.held.acked(), ",", lane.held.cursor(), ",", lane.held.room(), ",", lane.stuck, ",",
                      lane.retiring, lane.said, ",", lane.said_end, ";");
    }
    for (const SendRequest& request : requests_) absl::StrAppend(&digest, request.done());
    return digest;
  }

 private:
  bool over() const { return !sender_.heals(); }
  // What the autopilot may move, close and open: lane 0 always stays.
  bool Piloted(int lane) const { return lane > 0 && !over(); }

  bool ToMove(int lane) const { return sender_.state(lane) == LaneState::kMoving; }
  int CountMade() const {
    int made = 0;
    for (int i = 0; i < kLanes; ++i) made += sender_.made(i) ? 1 : 0;
    return made;
  }

  static void Read(Lane* lane) { lane->received += std::exchange(lane->socket.in_kernel, std::string()); }

  // As ReceiveStream: its latest frame says so, or it was opened late and never used.
  bool MayBeClosed(int index) const {
    const Lane& lane = lanes_[static_cast<size_t>(index)];
    if (index >= lanes_at_start_ && lane.received.empty()) return true;
    return lane.said_end > 0 && lane.said_end == lane.received.size();
  }

  bool Send(Lane* lane) {
    if (lane->lost || !sender_.up(static_cast<int>(lane - lanes_.data())) || over()) return false;
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
    if (lane->retiring) return SayClose(lane);
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
    lane->said = false;
    return true;
  }

  static bool SayClose(Lane* lane) {
    if (lane->said || lane->held.room() == 0) return false;
    const std::string header(kHeaderBytes, 'c');
    lane->held.Begin(header.data(), {}, nullptr);
    lane->stream += header;
    Give(lane, header.data(), header.size());
    lane->held.Sent(kHeaderBytes);
    lane->said = true;
    lane->said_end = lane->stream.size();
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
    open_lanes_.Open(static_cast<size_t>(index));
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

  std::vector<bool> AtStart() const {
    std::vector<bool> have(kLanes, false);
    for (int i = 0; i < lanes_at_start_; ++i) have[static_cast<size_t>(i)] = true;
    return have;
  }

  const int lanes_at_start_;
  LaneBudget budget_;
  OpenLanes open_lanes_{&budget_};
  LaneTable sender_{Direction::kSend, AtStart()};
  LaneTable receiver_{Direction::kReceive, AtStart()};
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
void Explore(int lanes_at_start, int steps, size_t depth) {
  std::deque<std::vector<Move>> open = {{}};
  std::unordered_set<std::string> seen;
  size_t lives = 0;
  while (!open.empty()) {
    const std::vector<Move> path = std::move(open.front());
    open.pop_front();
    std::unique_ptr<World> world;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int step = 0; step < steps; ++step) {
        if (world == nullptr) {
          world = std::make_unique<World>(lanes_at_start);
          for (const Move& move : path) ASSERT_TRUE(world->Do(move)) << Told(path);
        }
        const Move move{static_cast<Step>(step), lane};
        if (!world->Do(move)) continue;  // and nothing has changed
        const std::unique_ptr<World> reached = std::move(world);
        std::vector<Move> next = path;
        next.push_back(move);
        ASSERT_EQ("", reached->Wrong()) << Told(next);
        if (!seen.insert(reached->Digest()).second) continue;
        ++lives;
        if (next.size() < depth) open.push_back(next);
        ASSERT_EQ("", reached->Finish()) << "after " << Told(next);
      }
    }
  }
  printf("%zu states within %zu steps\n", lives, depth);
  EXPECT_GT(lives, 1000u);
}

TEST(LaneLifeExplorerTest, EveryLifeEndsWell) { Explore(kLanes, kStepsUnpiloted, LongRun() ? 11 : 9); }

TEST(LaneLifeExplorerTest, EveryLifeUnderAnAutopilotEndsWell) { Explore(kLanes, kSteps, LongRun() ? 10 : 8); }

TEST(LaneLifeExplorerTest, EveryLifeOfALaneOpenedLaterEndsWell) { Explore(1, kSteps, LongRun() ? 12 : 10); }

}  // namespace
}  // namespace tcpx
