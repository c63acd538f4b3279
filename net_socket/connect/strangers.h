// strangers.h: what the log says of those who reach a listening port and are no peers.
//
// Purpose: one line for each kind of stranger at once, then one for all that came within a minute, with their number:
//          an operator learns that somebody knocks, and a scanner does not fill the disk.
//
// Threads: the reactor.
// Units:   nanoseconds.
// Lifetime: borrows the reactor; CloseInLoop before it stops.
#ifndef TCPX_NET_SOCKET_CONNECT_STRANGERS_H_
#define TCPX_NET_SOCKET_CONNECT_STRANGERS_H_

#include <array>
#include <cstdint>

#include "common/address.h"
#include "common/clock.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/message/wire.h"

namespace tcpx {

enum class Stranger {
  kSilent,   // said nothing until TCPX_HELLO_TIMEOUT
  kScan,     // left without a word
  kHalf,     // left, or ran out of time, within its hello
  kForeign,  // HTTP, TLS, garbage
  kCrowd,    // had to make room for another
  // Refused by the answer.
  kVersion,
  kTicket,
  kLane,
  kDuplicate,
  kTrafficClass,
  kPurpose,
  kNoSecret,
  kSecretAlone,
  kOtherSecret,
};
inline constexpr size_t kStrangers = 14;

// Which kind a refused hello is. Not for kAccepted.
Stranger StrangerOf(HelloStatus status);

class Strangers {
 public:
  // A guess: rare enough for a log that is kept for weeks, often enough to see when it began and ended.
  static constexpr int64_t kPeriodNs = 60 * kSecond;

  explicit Strangers(Reactor* reactor, int64_t period_ns = kPeriodNs) : reactor_(reactor), period_ns_(period_ns) {}

  void NoteInLoop(Stranger kind, const SocketAddress& from);
  // Says what was only counted so far.
  void CloseInLoop();

 private:
  struct Kind {
    bool counting = false;  // a line was written less than a period ago
    int64_t counted = 0;    // since that line
    SocketAddress latest;
    Reactor::TimerId timer;
  };

  void StartCountingInLoop(Stranger kind);
  void SayCounted(Stranger kind);
  Kind& At(Stranger kind) { return kinds_[static_cast<size_t>(kind)]; }

  Reactor* const reactor_;
  const int64_t period_ns_;
  std::array<Kind, kStrangers> kinds_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_STRANGERS_H_
