// wait_record.h: what one end of a connection tells the other of what it waits for. Pure.
//
// Wire:    the body of a record kWaits of the health socket, after the connection's id: a version, then fields in their
//          order; a newer peer may add fields after them. At most kNewsBytesMax.
// Threads: any.
// Units:   milliseconds, percent.
// Errors:  DecodeNews: false for nonsense.
#ifndef TCPX_NET_SOCKET_MESSAGE_WAIT_RECORD_H_
#define TCPX_NET_SOCKET_MESSAGE_WAIT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tcpx {

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
};
inline constexpr int kCauses = 11;

struct WaitRoot {
  Cause cause = Cause::kNone;  // kNone: nothing is known, or a candidate
  bool candidate = false;
  uint64_t finder = 0;  // a number of the rank that found it, or that is the candidate
  uint32_t serial = 0;  // of the finder's looks
  int64_t lag = 0;      // of a candidate: messages received and not passed on
  std::string culprit;
  std::string evidence;
  std::vector<std::string> chain;  // from the neighbour of who says it, to the finder; at most kChainMax

  bool known() const { return cause != Cause::kNone; }
  bool any() const { return known() || candidate; }
};
inline constexpr size_t kChainMax = 8;

struct WaitNews {
  bool asks = false;      // it wants an answer
  std::string who;        // "node7 pid 4711 (rank 3)"
  uint32_t posted = 0;    // messages under way at this end of this connection
  uint64_t sequence = 0;  // of the oldest of them
  uint32_t stood_ms = 0;  // so long has something of this communicator stood at that rank; 0: all moves
  uint8_t no_cpu_percent = 0;
  WaitRoot root;
};

inline constexpr size_t kNewsBytesMax = 3072;

std::string EncodeNews(const WaitNews& news);
bool DecodeNews(absl::string_view text, WaitNews* news);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_MESSAGE_WAIT_RECORD_H_
