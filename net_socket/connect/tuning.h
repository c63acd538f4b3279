// tuning.h: the numbers by which lanes are dialled again, in the form of net_socket/pilot/tuning.h.
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/healing.md: dialling again

// How long a lane's own path is dialled alone: a handshake across continents. [ns; healing_paths_test: where it was
// tried twice before another one, lanes of a cable that is out needed more than 3 s]
inline constexpr int64_t kAloneNs = 100 * kMillisecond;
// How long another path has before the next one gets its turn. [ns]
inline constexpr int64_t kTurnNs = 500 * kMillisecond;
// How long the socket that found the peer has for its hello, before all begin anew. [ns]
inline constexpr int64_t kResumeHelloNs = 4 * kSecond;
// How long a socket has to find the peer where other bindings remain to be tried (dial_ways.h), or where it replaces a
// lost one: a SYN's first retransmission, which comes after a second, still counts. [ns]
inline constexpr int64_t kWayNs = 1500 * kMillisecond;
// How long the peer has to answer the hello of a socket that replaces a lost one. [ns]
inline constexpr int64_t kAnswerNs = 3 * kSecond;
// Shortest pause between two such dials of one path. [ns]
inline constexpr int64_t kPauseMinNs = 10 * kMillisecond;
// Longest pause. [ns]
inline constexpr int64_t kPauseMaxNs = 250 * kMillisecond;
// While a connection begins: a bulk lane whose path has failed this often takes another lane's. [dials]
inline constexpr int kTriesOfOwnPath = 2;
// Longest pause of a lane that the peer has no room for. [ns; a guess: within FreePlace::kWaitsNs of unaccepted.h]
inline constexpr int64_t kRoomPauseMaxNs = kSecond;
// How long a lane that only wants to return to its path tries. [ns]
inline constexpr int64_t kReturnNs = 3 * kSecond;
// How long a lane that the autopilot opens is dialled. [ns]
inline constexpr int64_t kOpenNs = 3 * kSecond;
// From one question whether a lane is given up to the next, once it could be. [ns]
inline constexpr int64_t kAskOverdueNs = 500 * kMillisecond;
// A connection that is in use just now is asked again after this. [ns]
inline constexpr int64_t kInUseNs = 100 * kMicrosecond;

}  // namespace tcpx::tuning
