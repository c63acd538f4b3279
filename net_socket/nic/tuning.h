// tuning.h: the numbers of lanes at the start, and of lost paths, in the form of net_socket/pilot/tuning.h.
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/lanes.md: at the start

// A connection starts with one bulk lane for each such part of an interface's speed. [Mbit/s; as kLanesBySpeedMax]
inline constexpr int kLaneMbps = 4000;
// But with no more of them. [lanes; bench/fabric: with 8, 16, 24 a ring over leaves and spines had 0.78, 0.90, 0.94 of
// perfect spreading on 512 hosts, 0.75, 0.88, 0.92 on 2,048]
inline constexpr int kLanesBySpeedMax = 24;
// The least where nobody knows the speed: enough for a card of 25 to 50 Gbit/s, few enough for a slow one. [lanes]
inline constexpr int kBlindLanes = 4;
// On Amazon's cards at the least. [lanes; as many sockets as NCCL's own transport opens there]
inline constexpr int kAmazonLanes = 16;
// On Google's cards at the least. [lanes; as many sockets as NCCL's own transport opens there]
inline constexpr int kGoogleLanes = 4;
// Bulk lanes of a process, dialled and accepted: this, or a quarter of its descriptors if that is less. [lanes]
inline constexpr int64_t kProcessLanesMax = 8192;
// A new connection has all its lanes while this many times as many are left; the last connections share the rest.
// [connections; of 512 with 24 lanes each 214 have all, and the last has 2; with 16 of this 326 have all, and 144 one]
inline constexpr int64_t kConnectionsToLeaveFor = 128;
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
