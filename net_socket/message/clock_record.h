// clock_record.h: a question for the time of the peer's clock, or its answer. Pure.
//
// Wire:    the body of a record kClock of the health socket, after an id of zeros: a version, three times (in a question
//          the latter two are 0), and in an answer who answers; a newer peer may add what it likes after that. Peers of
//          earlier builds skip the record.
// Threads: any.
// Units:   nanoseconds of MonotonicNanos, each of its own host.
// Errors:  DecodeClock: false for nonsense.
#ifndef TCPX_NET_SOCKET_MESSAGE_CLOCK_RECORD_H_
#define TCPX_NET_SOCKET_MESSAGE_CLOCK_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tcpx {

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

#endif  // TCPX_NET_SOCKET_MESSAGE_CLOCK_RECORD_H_
