// tuning.h: every number of the autopilot that was chosen, and not taken from a standard or a limit.
//
// Purpose: one place to look and to change. tools/tuning_tables makes the table in docs/lanes.md from the comments: what
//          a number means, then its unit, then the experiment that chose it. The simulation of the unit tests
//          (lane_pilot_paths_test, lane_pilot_storms_test) says what a change does.
//
// Threads: any. Units: each says its own.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_TUNING_H_
#define TCPX_NET_SOCKET_PILOT_TUNING_H_

#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// From one step of the autopilot to the next, while data is under way.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kStepNs = 20 * kMillisecond;

// How long a look takes.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kMeasureNs = 200 * kMillisecond;

// From a change of the lanes to the next look.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kSettleNs = 100 * kMillisecond;

// A connection without a step for so long was idle.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kStoodStillNs = 60 * kMillisecond;

// Steady traffic before the first trial, longer than slow start.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kFirstTrialNs = 300 * kMillisecond;

// Pause between attempts to explore, doubled by each that was in vain.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kExploreEveryNs = 2 * kSecond;

// The same between attempts to thin.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kThinEveryNs = 5 * kSecond;

// The most that such a pause grows to.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kEveryMaxNs = 60 * kSecond;

// Pauses differ by so much either way, by the seed, so that two connections get out of step.
// Unit:   part of the pause
// Chosen: without an experiment
inline constexpr double kJitter = 0.25;

// Lanes that are tried at once, at the least.
// Unit:   lanes
// Chosen: without an experiment
inline constexpr int kExploreMin = 4;

// How long the lanes of an attempt may take to open.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kOpenWithinNs = kSecond;

// What an attempt to explore has to bring, at the least: half of what one more lane brings if each is limited, and not
// less than this.
// Unit:   part of the total
// Chosen: without an experiment
inline constexpr double kGainMin = 0.05;

// The same, and not more than this.
// Unit:   part of the total
// Chosen: without an experiment
inline constexpr double kGainMax = 0.10;

// A gain counts only beyond so much noise.
// Unit:   times the noise
// Chosen: NoiseOpensNoLanesOnOnePath: without it 16 to 31 lanes on one path in noise of 5 to 20 %, with it 4 to 5
inline constexpr double kGainNoise = 1.5;

// Attempts to explore in vain, in a row, before there is a pause.
// Unit:   attempts
// Chosen: without an experiment
inline constexpr int kVainMax = 3;

// Thinning tries without this part of the lanes, and with fewer where those were missed.
// Unit:   one part in
// Chosen: without an experiment
inline constexpr size_t kThinPart = 6;

// So few lanes stay without a trial: a trial costs them the traffic of one or more, which is more than they cost.
// Unit:   lanes
// Chosen: paths of 400, 400, 400 and 40 Mbit/s, one of which falls and returns: 0.90 to 0.97 of the sum if fewer are
//         tried, 0.97 to 0.99 like this
inline constexpr size_t kFewLanes = 4;

// What is lost with a lane that is not needed: this part of what it seemed to bring.
// Unit:   part of what it brought
// Chosen: without an experiment
inline constexpr double kOwnPart = 0.7;

// A loss below this part of the total does not count.
// Unit:   part of the total
// Chosen: without an experiment
inline constexpr double kMissedMin = 0.02;

// A loss above this part of the total counts.
// Unit:   part of the total
// Chosen: bench/netns/paths.sh, eight paths of 200 Mbit/s: 0.83 and 0.90 of the sum with 0.05, 0.93 with this (together
//         with kLame)
inline constexpr double kMissedMax = 0.03;

// One look is enough to see that lanes are missed, beyond so much noise.
// Unit:   times the noise
// Chosen: NoiseOpensNoLanesOnOnePath, together with kGainNoise
inline constexpr double kSureNoise = 4;

// Looks in a row that say so, within the noise.
// Unit:   looks
// Chosen: NoiseOpensNoLanesOnOnePath, together with kGainNoise
inline constexpr int kThinLooks = 3;

// Single lanes that are missed, in a row, before thinning ends.
// Unit:   lanes
// Chosen: without an experiment
inline constexpr int kThinVainMax = 3;

// A lane that brings less than this part of the median is lame.
// Unit:   part of the median
// Chosen: bench/netns/paths.sh, eight paths of 200 Mbit/s: 0.83 and 0.90 of the sum with a fifth, 0.93 with this
//         (together with kMissedMax)
inline constexpr double kLame = 0.05;

// It has had data to send: it ran dry in less than this part of the look's steps.
// Unit:   one part in
// Chosen: bench/netns/paths.sh, 128 KiB: 0.74 and 0.77 if lanes that are given little count as lame, 0.83 and 0.90 if not
inline constexpr int kDryPart = 4;

// How long a lame lane is paused, the first time; doubled each time.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kLameForNs = 500 * kMillisecond;

// The most that this grows to.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kLameForMaxNs = 2 * kSecond;

// Times in a row that a lane was lame, after which it is moved.
// Unit:   times
// Chosen: APathThatFallsAndComesBack: a path may recover, and the port is known to lead to it
inline constexpr int kLameMove = 20;

// The same, after which it is closed.
// Unit:   times
// Chosen: without an experiment
inline constexpr int kLameMax = 40;

// A look below this part of the average is low.
// Unit:   part of the average
// Chosen: without an experiment
inline constexpr double kFallen = 0.85;

// Low looks in a row that say that the path has changed.
// Unit:   looks
// Chosen: without an experiment
inline constexpr int kLowLooksMax = 3;

// What a look adds to the average: this part of its difference.
// Unit:   part of the difference
// Chosen: without an experiment
inline constexpr double kAverageGain = 0.25;

// An average below this part of the best makes the next attempt to explore come soon.
// Unit:   part of the best
// Chosen: without an experiment
inline constexpr double kBelowBest = 0.9;

// How soon.
// Unit:   ns
// Chosen: without an experiment
inline constexpr int64_t kBelowBestEveryNs = 2 * kSecond;

// The best loses this part with each look: what was there once need not come back.
// Unit:   part of the best
// Chosen: without an experiment
inline constexpr double kBestFades = 0.002;

// Looks that an attempt is compared with, and that say how much noise there is.
// Unit:   looks
// Chosen: without an experiment
inline constexpr size_t kPastLooks = 8;

// More noise than this is not believed.
// Unit:   part of the total
// Chosen: without an experiment
inline constexpr double kNoiseMax = 0.25;

// Sockets that a connection may dial at once, to find its number of lanes.
// Unit:   sockets
// Chosen: TwoConnectionsShareTheirPaths: with half of it one of the two ran out first, and got two thirds of its part
inline constexpr int kDialsAtOnce = 128;

// Sockets that it may dial each minute, in addition.
// Unit:   sockets a minute
// Chosen: without an experiment
inline constexpr int kDialsEachMinute = 8;

}  // namespace tcpx::tuning

#endif  // TCPX_NET_SOCKET_PILOT_TUNING_H_
