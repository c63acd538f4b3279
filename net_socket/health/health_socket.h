// health_socket.h: the bytes of a health socket, and of the next ones in its place: in and out, sealed or not.
//
// Purpose: what is said on a socket that heals is kept until the peer's kernel has acknowledged it, and said again on
//          the next one.
// States:  down -> up -> down; closed, with a bye, for good (kHealthMoves). One that heals: up -> lost -> up. Its owner
//          moves it.
// Threads: any; InLoop, and what moves it: in the reactor.
// Units:   bytes; nanoseconds of MonotonicNanos.
// Errors:  to End.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/fd.h"
#include "common/mutex.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/message/health_records.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

// kLost: it is to be up again.
enum class HealthState { kDown, kUp, kLost, kClosed };
inline constexpr int kHealthStates = 4;

// Whether a health socket may go from one state (row) to another (column).
inline constexpr bool kHealthMoves[kHealthStates][kHealthStates] = {
    // down, up, lost, closed
    {false, true, false, true},    // down
    {true, false, true, true},     // up
    {true, true, false, true},     // lost
    {false, false, false, false},  // closed
};
constexpr bool MayMove(HealthState from, HealthState to) {
  return kHealthMoves[static_cast<int>(from)][static_cast<int>(to)];
}

class HealthSocket {
 public:
  // How the latest socket has ended.
  struct End {
    bool seen = false;
    absl::Status status;   // OK: an end of file
    bool garbage = false;  // what came, or the cipher, was no good
    bool silent = false;   // nobody has answered for the whole timeout
    bool orderly = false;  // it is no news
  };
  // What is of no use later. kIdle and kGreeting may go unread by a peer that closes. To a peer that does not read
  // kIdle is not said: what it hears of failures matters more.
  enum class Passing { kIdle, kGreeting, kQuestion };

  // `stir` has the owner served by the reactor soon: something waits to be sent, or the socket has ended.
  HealthSocket(Reactor* reactor, std::function<void()> stir) : reactor_(reactor), stir_(std::move(stir)) {}

  HealthState state() const {
    MutexLock lock(mutex_);
    return state_;
  }
  // That both ends do, with the latest socket.
  bool heals() const {
    MutexLock lock(mutex_);
    return heals_;
  }
  // To up. False: it is closed. The owner watches it, and calls FlushInLoop.
  bool Open(OwnedFd fd, Seals seals, bool heals, bool encrypts);
  // From up.
  void Drop(HealthState to) {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kUp) DropLocked(to);
  }
  // The same, to lost, or down where it does not heal; its end is forgotten.
  void LetGo();
  // From here on nothing that comes is acknowledged.
  void Freeze();
  // To down, from up or lost: with `end` it is over. False: it was neither.
  bool Fail(const absl::Status& end);
  // For good; from up with a bye.
  void Close();

  // Some of what is there, one call at a time. True: there may be more.
  bool Read(std::vector<HealthNotice>* notices) {
    MutexLock lock(mutex_);
    return ReadLocked(notices);
  }
  void FlushInLoop();
  // False: there is nobody to tell, or not now; one that is lost tells it later. `may_go_unread`: by a peer that
  //        closes.
  bool Say(const std::string& record, bool may_go_unread = false);
  // False: nothing can be sent to the peer now.
  bool SayNow(const std::string& record, Passing passing = Passing::kIdle);
  // It heals, and the peer may not have heard something.
  bool has_unheard() const {
    MutexLock lock(mutex_);
    return heals_ && !said_.empty();
  }

  End end() const;
  // Stirs where it is up, and has ended: by garbage, or otherwise.
  void StirAtEnd(bool garbage) const {
    MutexLock lock(mutex_);
    if (state_ == HealthState::kUp && end_.has_value() && (end_errno_ == kGarbage) == garbage) stir_();
  }
  // True exactly when the peer's end was seen, no bye before it, and no other socket is expected.
  bool PeerVanished() const {
    MutexLock lock(mutex_);
    return OverLocked() && end_->ok();
  }
  // The same for a reset: by a process that ended with something unread, or by a device on the path.
  bool WasReset() const;
  // When the peer's process last said anything, of any connection; 0: never.
  int64_t heard_ns() const {
    MutexLock lock(mutex_);
    return heard_ns_;
  }
  // What the kernel knows of the socket, and both its addresses unless `hosts` is null; false: it is not up, or ended.
  bool ReadTcp(LaneTcpInfo* info, std::string* hosts = nullptr) const;

 private:
  static constexpr int kGarbage = -1;  // in place of an errno
  // What the peer may not have heard.
  struct Said {
    uint64_t end = 0;  // position after it in the stream of the socket at hand
    std::string record;
  };

  // The only function that writes state_.
  void MoveToLocked(HealthState to) TCPX_REQUIRES(mutex_);
  void DropLocked(HealthState to) TCPX_REQUIRES(mutex_);
  // No other socket is expected, and no bye has come.
  bool OverLocked() const TCPX_REQUIRES(mutex_) {
    const bool over = !heals_ || state_ == HealthState::kDown || state_ == HealthState::kClosed;
    return over && end_.has_value() && !reader_.bye();
  }
  bool CanSayLocked() const TCPX_REQUIRES(mutex_) { return state_ == HealthState::kUp && !end_.has_value(); }
  bool ReadLocked(std::vector<HealthNotice>* notices) TCPX_REQUIRES(mutex_);
  absl::Status TakeLocked(const char* data, size_t bytes, std::vector<HealthNotice>* notices) TCPX_REQUIRES(mutex_);
  void SendLocked(const std::string& record) TCPX_REQUIRES(mutex_);
  // And has the rest sent that the socket does not take at once.
  void SendSoonLocked(const std::string& record) TCPX_REQUIRES(mutex_) {
    SendLocked(record);
    if (!outbox_.empty()) stir_();
  }
  // A socket that can no longer be sealed ends, and its connections with it.
  void CheckSealerLocked() TCPX_REQUIRES(mutex_);
  void ForgetHeardLocked() TCPX_REQUIRES(mutex_);

  Reactor* const reactor_;
  const std::function<void()> stir_;
  mutable Mutex mutex_;                                             // never held while a link is used
  HealthState state_ TCPX_GUARDED_BY(mutex_) = HealthState::kDown;  // changes in the reactor only
  OwnedFd fd_ TCPX_GUARDED_BY(mutex_);                              // valid exactly while up
  Seals seals_ TCPX_GUARDED_BY(mutex_);                             // of fd_
  HealthReader reader_ TCPX_GUARDED_BY(mutex_);
  std::string outbox_ TCPX_GUARDED_BY(mutex_);
  bool may_reset_ TCPX_GUARDED_BY(mutex_) = false;           // something was said on it that may go unread
  std::optional<absl::Status> end_ TCPX_GUARDED_BY(mutex_);  // of the latest socket, once seen
  int end_errno_ TCPX_GUARDED_BY(mutex_) = 0;                // with it; kGarbage: that, or a broken cipher
  bool heals_ TCPX_GUARDED_BY(mutex_) = false;
  bool encrypts_ TCPX_GUARDED_BY(mutex_) = false;
  int send_errno_ TCPX_GUARDED_BY(mutex_) = 0;       // what a send of the socket at hand broke by; 0: none did
  uint64_t sent_bytes_ TCPX_GUARDED_BY(mutex_) = 0;  // that the socket at hand took
  std::deque<Said> said_ TCPX_GUARDED_BY(mutex_);    // of one that heals
  int64_t heard_ns_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx
