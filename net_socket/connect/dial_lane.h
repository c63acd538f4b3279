// dial_lane.h: one lane, or the health socket, being dialled: its socket, its handshake, its retries.
//
// Threads: the reactor.
// States:  idle -> dialling -> hello -> answered (kDialMoves). README.md says when, and by which paths, a lane is
//          dialled again. An attempt finds the peer within TCPX_HELLO_TIMEOUT, by all its ways together.
// Lifetime: borrows its owner, and what that is dialling.
// Errors:  to the owner, with the address tried and the interface used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/fd.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/dial_ways.h"
#include "net_socket/connect/handshake.h"
#include "net_socket/message/wire.h"
#include "net_socket/nic/device.h"
#include "net_socket/nic/lane_plan.h"

namespace tcpx {

struct DialRequest {
  Handle handle;
  const Device* device = nullptr;
  std::shared_ptr<const Communicator> communicator = std::make_shared<Communicator>();
  int lanes = 1;
  bool piloted = false;                     // lanes may be opened and closed later, if the peer can do that
  std::shared_ptr<const void> taken_lanes;  // of the runtime's budget
  // The address is one of this host's, and the handle seems to come from another host or container.
  bool peer_is_elsewhere = false;
  PathFacts path;  // of every attempt of every lane, but for family and kind
};

// What all lanes share that are dialled for one owner.
struct DialSetup {
  Runtime* runtime = nullptr;
  const Secret* secret = nullptr;  // null where none is shared
  DialRequest request;
  ConnectionId id{};
  bool tries_on = false;  // they are dialled, often, until their owner ends that

  // For what dials once the connection is established: it may outlive it, and keeps neither budget nor communicator.
  DialSetup OfEstablished() const {
    DialSetup setup = *this;
    setup.request.taken_lanes.reset();
    setup.request.communicator.reset();
    setup.tries_on = true;
    return setup;
  }
};

enum class DialStep { kIdle, kDialling, kHello, kAnswered };
inline constexpr int kDialSteps = 4;

// Whether a lane may go from one step (row) to another (column).
inline constexpr bool kDialMoves[kDialSteps][kDialSteps] = {
    // idle, dialling, hello, answered
    {false, true, false, false},  // idle
    {true, false, true, false},   // dialling
    {true, false, false, true},   // hello
    {true, false, false, false},  // answered
};
constexpr bool MayMove(DialStep from, DialStep to) { return kDialMoves[static_cast<int>(from)][static_cast<int>(to)]; }

class DialLane final : public Reactor::Handler {
 public:
  // Whom it is dialled for.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void LaneAnswered(DialLane* lane) = 0;
    // Where else a lane may go whose own path fails: lane 0 to the peer's other address, a bulk lane by the path of a
    // lane that is answered, a health socket that is dialled again by another interface; null: nowhere.
    virtual const LanePath* OtherPath(const DialLane& lane) = 0;
    // The acceptor no longer knows this connection, or knows it differently. The lane is still on the stack.
    virtual void BeginAnew(absl::Status why) = 0;
    // It has come to nothing. The lane is still on the stack.
    virtual void Finish(absl::Status status) = 0;
    // The peer's kernel has answered; *hello is said next. False: the socket is no longer wanted, and nothing about it
    // is reported.
    virtual bool Connected(const DialLane& lane, Hello* hello) = 0;
    // True: a peer that refuses a connection is gone for good.
    virtual bool RefusalIsFinal() = 0;
    // A connect has failed, and neither because it was refused nor because there is no route.
    virtual void NotRefused() = 0;
    // 0: the lane may be dialled once more, now, and is. Else when to ask again.
    virtual int64_t TakeDialTurn() = 0;
  };

  // In place of a lane's index: the health socket.
  static constexpr int kHealth = -1;

  DialLane(const DialSetup* dialling, Owner* owner, int index)
      : dialling_(dialling), owner_(owner), index_(index), ways_(dialling->runtime) {}
  ~DialLane() override { Halt(); }

  // By a path that was planned just now.
  void DialInLoop(const LanePath& path) {
    path_ = path;
    turned_ = false;
    attempts_ = no_room_ = 0;
    detoured_ = false;
    ways_.Forget();
    DialInLoop();
  }
  // Again from the beginning, by the path that it has.
  void DialInLoop();
  // Idle until DialInLoop.
  void Halt();
  void OnEvents(uint32_t events) override;
  bool answered() const { return step_ == DialStep::kAnswered; }
  // True exactly when it was answered and its socket is as it was. Else it is dialled again.
  bool StillUpInLoop();
  // Lane 0: says kEstablished, if the peer knows it. False: it could not, and is dialled again.
  bool SayEstablishedInLoop();
  // Once answered.
  LaneSocket TakeSocket();
  // "connect to 10.0.0.1:4410 through eth0 (10.0.0.2): why".
  absl::Status Describe(const absl::Status& why) const;
  // What it has come to so far: "try 3 of 35: connect: timed out", after `when`.
  absl::Status Progress(absl::string_view when) const;
  int index() const { return index_; }
  const LanePath& path() const { return path_; }
  const Answer& answer() const { return handshake_->answer(); }

 private:
  // The only function that writes step_.
  void MoveTo(DialStep to);
  void TryWay();
  // From then on, once it has its turn.
  void DialAt(int64_t at_ns);
  // The current way finds no peer: tries the next one, or ends the attempt.
  void NextWay(const absl::Status& why);
  Hello MakeHello() const;
  void Dialled();
  // False exactly when what is to be said could not be sent; the lane then begins anew.
  bool Speak();
  void ReadAnswer();
  void Answered();
  bool Forgotten() const;
  void Retry(absl::Status why);
  // Lane 0's other address, or the health socket's other interface, once in each attempt.
  const LanePath* OtherAddress() const { return index_ <= 0 && !turned_ ? owner_->OtherPath(*this) : nullptr; }
  bool TurnToOther(const absl::Status& why);
  // A bulk lane goes on by another lane's path, once for each path that was planned.
  bool Detour(const absl::Status& why);
  // Ends the dial with what this lane met. Only the peer's process ends the lane of a connection that is dialled
  // until its owner stops: any other answer may come from a device on the path.
  void GiveUp(const absl::Status& why, bool final = false);
  void SetDeadline(int64_t after_ns);
  Reactor& reactor() { return dialling_->runtime->reactor; }
  const Options& options() const { return dialling_->runtime->options; }

  const DialSetup* const dialling_;
  Owner* const owner_;
  const int index_;
  LanePath path_;
  DialStep step_ = DialStep::kIdle;
  OwnedFd fd_;
  DialWays ways_;  // of the attempt
  bool detoured_ = false;
  bool turned_ = false;              // this attempt has come to the other address
  std::string first_turn_;           // what the address before it came to
  bool first_had_no_route_ = false;  // that was all
  Reactor::TimerId timer_{0, 0};
  int attempts_ = 0;                        // by the current path
  int no_room_ = 0;                         // how often the peer had none in a row
  uint32_t hellos_ = 0;                     // said so far, by any path: the number of the next one
  absl::Status latest_;                     // what the latest attempt came to; OK: there was none
  std::optional<DialHandshake> handshake_;  // of the latest attempt
  Seals seals_;                             // of fd_, once answered
};

}  // namespace tcpx
