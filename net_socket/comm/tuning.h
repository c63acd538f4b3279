// tuning.h: the numbers of connections, in the form of net_socket/pilot/tuning.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/lanes.md: closing a lane

// From one look at a lane that is to be closed to the next. [ns]
inline constexpr int64_t kCloseNs = 5 * kMillisecond;
// The most that this grows to: a caller that moves the lanes itself may be idle for long. [ns]
inline constexpr int64_t kCloseMaxNs = 4 * kSecond;

// == docs/lanes.md: moved by the caller

// Bulk lanes that had nothing lately and are asked in one pass all the same, by turns. [lanes; messages of 256 KiB by
// 17 lanes: half of the latency on one host, 1.6 times the rate between namespaces]
inline constexpr unsigned kIdleLanesAsked = 4;

// == docs/healing.md: sent again, and probes

// From one try of lane 0 to send again what an earlier socket may have lost to the next, at first. [ns]
inline constexpr int64_t kSendAgainNs = 100 * kMicrosecond;
// The most that this grows to. [ns]
inline constexpr int64_t kSendAgainMaxNs = 50 * kMillisecond;
// From one probe of an idle lane 0 to the next, of a peer without a health socket. [ns]
inline constexpr int64_t kProbesWithoutHealthNs = 2 * kSecond;

// == docs/healing.md: evidence for a verdict

// Looks at a request that stalls. [looks in a stretch of TCPX_STALL_WARN]
inline constexpr int64_t kLooksAWarn = 4;
// From one such look to the next, at the least. [ns]
inline constexpr int64_t kStallLookMinNs = 100 * kMillisecond;
// And at the most. [ns]
inline constexpr int64_t kStallLookMaxNs = 10 * kSecond;
// Whether our threads get CPU is looked at anew once the latest look is this old. [percent of a look at a request]
inline constexpr int64_t kCpuLookPercent = 75;
// What only the peer's wait has shown is forgotten after this many looks without its news. [looks]
inline constexpr int64_t kStuckLooks = 3;
// A health socket on which nothing was heard for longer is not heard: keepalive has it answered each third of
// TCPX_PEER_TIMEOUT. [percent of that]
inline constexpr int64_t kHealthHeardPercent = 60;
// Heard within this time is heard just now: a flow that is swallowed is silent for longer. [ns]
inline constexpr int64_t kJustNowNs = 200 * kMillisecond;
// How long the lanes are not looked at again. [ns]
inline constexpr int64_t kLanesKeptNs = 100 * kMillisecond;
// A root is dropped if its finder has not confirmed it for this many looks. [looks]
inline constexpr int64_t kStaleLooks = 6;
// And for this long in addition. [ns]
inline constexpr int64_t kStaleMoreNs = 2 * kSecond;
// How long what was slow counts, unless it is found so again. [stretches of TCPX_STALL_WARN]
inline constexpr int64_t kSlowKeptLongs = 3;

// == docs/healing.md: does the host answer

// Hosts that are asked at the same time. [sockets]
inline constexpr size_t kKnocksAtOnce = 8;
// A question without an answer is given up: by then the kernel has asked three times more. [ns]
inline constexpr int64_t kKnockPatienceNs = 8 * kSecond;
// And not asked again for this long, so that others have their turn. [ns]
inline constexpr int64_t kKnockAgainNs = 16 * kSecond;
// A host that nobody has asked about for this long is forgotten. [ns]
inline constexpr int64_t kKnockForgottenNs = 60 * kSecond;

}  // namespace tcpx::tuning
