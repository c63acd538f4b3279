// lane_life_world.h: two lanes of a connection and what may happen to them, for an explorer of all their lives.
//
// Purpose: two ends, and a network that delays, resets or swallows any socket at any moment, a dialler that comes late,
//          a peer that closes or vanishes, and an autopilot that moves, closes and opens one of the lanes. Lanes'
//          states, the frames that are held, the striper, the budget of lanes, and the arbiter of who is gone are the
//          code that ships; sockets are strings.
//
// In every state that is reached: the peer gets each byte of a lane's stream once, in order, and as it was first sent;
// a request is done only when the peer's kernel has its bytes; and from there on, once the network behaves, all arrives
// and nothing is left over, or the sender knows that its peer has left. The arbiter's stuck sockets are those
// that have moved no byte; the receiver's counts none, finds nothing final while a lane is up, and has nothing to say
// once all is well. Both ends agree then on which lanes are closed, one is up, and each open lane has its part of the
// budget. What is final in time is arbiter_explorer_test's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net_socket/comm/lane_table.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/send/held_frames.h"
#include "net_socket/send/stripe.h"

namespace tcpx {
namespace lane_life {

inline constexpr int kLanes = 2;
inline constexpr int kMessages = 3;
inline constexpr size_t kMessageBytes = 128;  // one cut: a message is one chunk
inline constexpr size_t kStepBytes = 160;     // of the network: less than a frame, and no part of it
inline constexpr size_t kHeldMax = 2;         // so that lanes run out of room

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
inline constexpr int kSteps = 17;
inline constexpr int kStepsUnpiloted = 12;

struct Move {
  Step step;
  int lane;

  std::string ToString() const;
};

class World {
 public:
  // Lanes above `lanes` are opened later, if ever.
  explicit World(int lanes);
  // False: that can't happen now.
  bool Do(const Move& move);
  // What is wrong; empty: nothing.
  std::string Wrong() const;
  // The network behaves from here on: everything that can happen does, until nothing can.
  std::string Finish();
  // Equal for worlds that can't be distinguished.
  std::string Digest() const;

 private:
  bool over() const { return !sender_.heals(); }
  // What the autopilot may move, close and open: lane 0 always stays.
  bool Piloted(int lane) const { return lane > 0 && !over(); }
  bool ToMove(int lane) const { return sender_.state(lane) == LaneState::kMoving; }
  int CountMade() const;

  static void Read(Lane* lane) { lane->received += std::exchange(lane->socket.in_kernel, std::string()); }
  // As ReceiveStream: its latest frame says so, or it was opened late and never used.
  bool MayBeClosed(int index) const;
  bool Send(Lane* lane);
  static bool SayClose(Lane* lane);
  // To the socket, which may be dead without anybody knowing.
  static void Give(Lane* lane, const char* data, size_t bytes);
  bool Lose(int index, LaneTable::Why why);
  bool TakeAnswer(int index, Lane* lane);
  // The word that the receiver has left, with what it has taken, or without.
  void Leave(bool tells);
  bool Arrived(const SendRequest& request) const;
  std::vector<bool> AtStart() const;

  const int lanes_at_start_;
  LaneBudget budget_;
  OpenLanes open_lanes_{&budget_};
  LaneTable sender_{Direction::kSend, AtStart()};
  LaneTable receiver_{Direction::kReceive, AtStart()};
  Arbiter arbiter_{kLanes, 1000, 1000};    // the sender's
  Arbiter receivers_{kLanes, 1000, 1000};  // it owes nothing
  Striper striper_{4, kMessageBytes};
  std::array<std::string, kMessages> payloads_;
  std::array<SendRequest, kMessages> requests_;
  std::array<Lane, kLanes> lanes_;
  std::array<std::pair<const Lane*, size_t>, kMessages> chunk_ends_{};  // by message: where its frame ends, on its lane
  int64_t clock_ = 0;
  bool gone_ = false;
  bool broken_ = false;
};

}  // namespace lane_life
}  // namespace tcpx
