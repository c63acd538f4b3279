// strangers.h: connections of a group that may say later which rank they come from, or never do.
//
// Purpose: anyone who has the ticket can open such a connection. It can end nothing but itself: only a few are kept,
//          each for a limited time, and the log gets at most one line a second. Once every rank has come nobody else
//          is expected, so that they are seldom looked for.
// Threads: under the group's mutex.
// Errors:  none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"

namespace tcpx {

class RmaStrangers {
 public:
  // Too low: a crowd pushes out ranks before they speak; too high: descriptors. A guess.
  static constexpr size_t kMax = 4;

  // `ranks` are to come.
  explicit RmaStrangers(size_t ranks) : missing_(ranks) {}

  // One has said which rank it comes from.
  void Greeted() { --missing_; }
  // Whether to look for new connections.
  bool MayCome() { return missing_ > 0 || ++looks_ % kLooks == 0; }
  void LookAtOnce() { looks_ = kLooks - 1; }
  // One was closed: because of `why`, or it has said nothing in time (OK).
  void Closed(uint32_t rank, const absl::Status& why) {
    uint64_t unsaid = 0;
    if (!lines_.May(MonotonicNanos(), &unsaid)) return;
    const std::string more = unsaid == 0 ? "" : absl::StrFormat("; %u others before were only counted", unsaid);
    TCPX_INFO("one-sided transfers of rank %u: a connection that had not said its rank was closed: %s%s", rank,
              why.ok() ? "it said nothing within TCPX_HELLO_TIMEOUT" : std::string(why.message()), more);
  }

 private:
  // A look takes a sixth of the time in which a group that waits asks its connections (callgrind). It also tells that
  // the communicator has failed, which a caller that asks without end learns from one in so many.
  static constexpr uint32_t kLooks = 64;

  size_t missing_;
  uint32_t looks_ = 0;
  LineLimit lines_;
};

}  // namespace tcpx
