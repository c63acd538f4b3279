// health_records.h: what passes on a health socket, from its bytes to what they mean, and back. Pure.
//
// Wire:    each record's body begins with a connection's id; one of zeros means the process. Then: of an error or a
//          parting the text; of left, from an end that received, the bytes taken of each lane's stream (eight bytes
//          each); of silent the lane (two bytes); of waits a WaitNews, of at most kNewsBytesMax; of clock, always of
//          the process, a ClockRecord. The last two begin with a version, and a newer peer may add fields to them.
//          Peers of earlier builds skip what they do not know.
// Threads: any; a reader one at a time.
// Units:   bytes; milliseconds, percent; nanoseconds of MonotonicNanos, each of its own host.
// Errors:  decoders: false for nonsense, and for what is of no interest. Readers: kUnavailable for garbage, from then
//          on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/message/frame_reader.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// What the peer said on a health socket.
struct HealthNotice {
  ConnectionId connection{};
  std::string cause;
  bool parting = false;         // it has given the connection up; else the connection has failed
  bool left = false;            // it has not failed: its end is closed
  int silent = -1;              // it goes on: what the peer says on this lane is not acknowledged
  std::string waits;            // what the peer waits for (WaitNews); the connection goes on
  std::string clock;            // of no connection: the time, or a question for it (ClockRecord)
  std::vector<uint64_t> taken;  // with left: bytes of each lane's stream, where the peer received
};

// Records, whole. `cause`: its first kCauseBytesMax bytes.
std::string FailureNotice(const ConnectionId& id, absl::string_view cause, bool parting);
std::string LeftNotice(const ConnectionId& id, const std::vector<uint64_t>& taken);
std::string SilentNotice(const ConnectionId& id, int lane);
std::string WaitsNotice(const ConnectionId& id, absl::string_view waits);
std::string ClockNotice(absl::string_view clock);

// Digests the stream of one health socket. Pure.
class HealthReader {
 public:
  // Takes what has arrived; notices are appended. Not OK when it is garbage.
  absl::Status Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices);
  bool bye() const { return bye_; }

 private:
  FrameReader frames_{"a message on the health socket"};
  bool bye_ = false;
};

// Their numbers are on the wire.
enum class Cause : uint8_t {
  kNone = 0,
  kProcessStopped = 1,
  kPeerLate = 2,
  kNoCpu = 3,
  kPathLoses = 4,
  kPathDead = 5,
  kPathSlow = 6,
  kHostGone = 7,
  kProcessGone = 8,
  kFlowDropped = 9,
  kInternal = 10,
  kPathLosesLarge = 11,
  kFlowsReset = 12,
};
inline constexpr int kCauses = 13;

struct WaitRoot {
  Cause cause = Cause::kNone;  // kNone: nothing is known, or a candidate that has not come round
  bool candidate = false;
  uint64_t finder = 0;  // a number of the rank that found it, or that is the candidate
  uint32_t serial = 0;  // of the finder's looks
  int64_t lag = 0;      // of a candidate: messages received and not passed on
  std::string culprit;
  std::string evidence;
  std::vector<std::string> chain;  // from the neighbour of the rank that says it, to the finder; at most kChainMax

  bool known() const { return cause != Cause::kNone; }
  bool any() const { return known() || candidate; }
};
inline constexpr size_t kChainMax = 8;

struct WaitNews {
  bool asks = false;        // it wants an answer
  std::string who;          // "node7 pid 4711 (rank 3)"
  uint32_t posted = 0;      // messages under way at this end of this connection
  uint64_t sequence = 0;    // of the oldest of them
  uint32_t stalled_ms = 0;  // how long something of this communicator has stalled at that rank; 0: all moves
  uint8_t no_cpu_percent = 0;
  WaitRoot root;
  uint64_t process = 0;  // of an introduction: a random number of the process; 0: not said
};

inline constexpr size_t kNewsBytesMax = 3072;

std::string EncodeNews(const WaitNews& news);
bool DecodeNews(absl::string_view text, WaitNews* news);

// A question for the time of the peer's clock, or its answer.
struct ClockRecord {
  int64_t asked_ns = 0;
  int64_t heard_ns = 0;     // 0: a question
  int64_t answered_ns = 0;  // 0: a question
  std::string who;          // without white space; empty: it has no name to tell

  bool answers() const { return answered_ns != 0; }
};
inline constexpr size_t kClockNameMax = 320;

std::string EncodeClock(const ClockRecord& record);
bool DecodeClock(absl::string_view text, ClockRecord* record);

}  // namespace tcpx
