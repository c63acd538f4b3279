// tuning.h: the numbers of lanes at the start, and of lost paths, in the form of net_socket/pilot/tuning.h.
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/lanes.md: at the start

// A connection starts with one bulk lane for each such part of an interface's speed. [Mbit/s; as kLanesBySpeedMax]
inline constexpr int kLaneMbps = 6250;
// But with no more of them. [lanes; bench/fabric: with 8, rings over leaves and spines had 0.95 to 0.98 of what 16 have
// on 8 and 64 hosts, 0.89 to 0.93 on 512; 32 have 1.04 of it at the most]
inline constexpr int kLanesBySpeedMax = 16;
// The least where nobody knows the speed: enough for a card of 25 to 50 Gbit/s, few enough for a slow one. [lanes]
inline constexpr int kBlindLanes = 4;
// On Amazon's cards at the least. [lanes; as many sockets as NCCL's own transport opens there]
inline constexpr int kAmazonLanes = 16;
// On Google's cards at the least. [lanes; as many sockets as NCCL's own transport opens there]
inline constexpr int kGoogleLanes = 4;
// Bulk lanes of a process, dialled and accepted: this, or a quarter of its descriptors if that is less. [lanes]
inline constexpr int64_t kProcessLanesMax = 8192;
// A new connection has all its lanes while this many times as many are left; the last are shared by the last
// connections. [connections]
inline constexpr int64_t kConnectionsToLeaveFor = 16;
// While this many bulk lanes of the process are busy, no connection opens more. [lanes]
inline constexpr int kBusyLanesMax = 32;

// == docs/healing.md: paths that were lost

// From one question whether a lost path works again to the next. [ns]
inline constexpr int64_t kAskPathNs = kSecond;
// The same if it was lost for long, or is lost again and again. [ns]
inline constexpr int64_t kAskPathRarelyNs = 30 * kSecond;
// From when on it was lost for long. [ns]
inline constexpr int64_t kLongLostNs = 600 * kSecond;
// A path that is lost again within this time is asked half as often. [ns]
inline constexpr int64_t kProvenNs = 60 * kSecond;

}  // namespace tcpx::tuning
