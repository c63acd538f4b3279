// tuning.h: the numbers of the pace of lanes, in the form of net_socket/pilot/tuning.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/lanes.md: how much a lane holds

// A lane takes more as soon as what it holds drains within this, plus two round trips. Too low: a flow runs dry while
// its thread waits for a CPU (a tick of the scheduler is 4 ms); too high: a message waits for a flow that has become
// slow. [ns; docs/experiments.md]
inline constexpr int64_t kDrainNs = 12 * kMillisecond;
// What it then takes drains within this. Lanes differ by this in when their chunks arrive. [ns]
inline constexpr int64_t kChunkNs = 4 * kMillisecond;
// A lane holds at most half of its part of all that is under way, unless that drains within this plus two round trips:
// what no lane holds yet goes to the lane that drains first, and the oldest message does not wait for a slow lane. [ns]
inline constexpr int64_t kPartNs = 2 * kMillisecond;
// Held before the rate is known. [units of the least amount]
inline constexpr int64_t kUnknownChunks = 4;
// A chunk of a piloted lane lasts this long at the least: a message waits for the last of its chunks. [ns]
inline constexpr int64_t kChunkLeastNs = 500 * kMicrosecond;
// And has this many bytes at the least. [bytes; docs/scale.md: 49,000 flows to one card]
inline constexpr int64_t kChunkLeastBytes = 4 << 10;
// The same where nothing is known of the lane. [bytes]
inline constexpr int64_t kChunkUnknownBytes = 16 << 10;
// A lane counts as busy in the span in which it pulled a chunk, and in the next one. [ns]
inline constexpr int64_t kBusySpanNs = 50 * kMillisecond;
// Up to this many busy lanes of a process have no bound: the kernel lets a send buffer grow to 4 MiB (tcp_wmem), so
// that they hold 256 MiB at the most. [lanes]
inline constexpr int64_t kLanesUnbound = 64;
// The least that a lane may have unsent. With 4,000 busy lanes each has less than 25 Mbit/s of a link of 100 Gbit/s:
// this is 20 ms of that. [bytes]
inline constexpr int64_t kUnsentBytesMin = 64 << 10;

// == docs/lanes.md: how a lane's rate is measured

// A shorter span is mostly noise. [ns]
inline constexpr int64_t kSpanMinNs = 5 * kMillisecond;
// The same where nothing is known yet. [ns]
inline constexpr int64_t kFirstSpanMinNs = kMillisecond;
// After a longer pause between two looks the lane was idle in between. [ns]
inline constexpr int64_t kLaneIdleNs = 50 * kMillisecond;
// A full lane looks again after this at the least. [ns]
inline constexpr int64_t kPullRetryMinNs = 200 * kMicrosecond;
// And at the most. [ns]
inline constexpr int64_t kPullRetryMaxNs = 2 * kMillisecond;
// From one look to the next while a lane drains with nothing to pull. [ns]
inline constexpr int64_t kPaceLookNs = 2 * kMillisecond;
// From one look at the least round trip to the next: it changes with the path only. [ns]
inline constexpr int64_t kRttEveryNs = 100 * kMillisecond;
// A peer's shut window is judged over this time: lanes ask the kernel every 100 ms. [ns]
inline constexpr int64_t kPeerEveryNs = 200 * kMillisecond;
// From one step of a shuffle to the next. Tests only. [ns]
inline constexpr int64_t kShuffleNs = 2 * kMillisecond;

// == docs/healing.md: acknowledgements

// From one look at what was acknowledged to the next while requests wait for it, at first. [ns]
inline constexpr int64_t kAckLookNs = 50 * kMicrosecond;
// The same where nothing is acknowledged. [ns]
inline constexpr int64_t kAckLookMaxNs = 2 * kMillisecond;

// == docs/healing.md: what a lane holds until it is acknowledged

// Chunks that a bulk lane may hold: at 10 Gbit/s and 64 KiB each 6 ms. [chunks]
inline constexpr size_t kHeldChunks = 128;
// Frames that lane 0 may hold. [frames]
inline constexpr size_t kHeldFrames = 256;
// Room of lane 0 for copies of payload. What finds no room, or is longer than kCopiedPayloadBytesMax, is done when it
// is acknowledged. [bytes]
inline constexpr size_t kHeldCopyBytes = 256 << 10;

}  // namespace tcpx::tuning
