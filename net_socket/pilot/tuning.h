// tuning.h: every number of the autopilot that was chosen, and not taken from a standard or a limit.
//
// Purpose: one place to look and to change. A comment says what a number means, and in brackets its unit and the
//          experiment that chose it; where none is named it was chosen without one. A line with == begins a table of
//          the page that it names: tools/tuning_tables writes them. lane_pilot_paths_test and lane_pilot_storms_test
//          simulate what a change does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/lanes.md: looks and pauses

// From one step of the autopilot to the next, while data is under way. [ns]
inline constexpr int64_t kStepNs = 20 * kMillisecond;
// How long a look takes. [ns]
inline constexpr int64_t kMeasureNs = 200 * kMillisecond;
// From a change of the lanes to the next look. [ns]
inline constexpr int64_t kSettleNs = 100 * kMillisecond;
// A connection without a step for this long paused. [ns]
inline constexpr int64_t kStillNs = 60 * kMillisecond;
// Steady traffic before the first trial, longer than slow start. [ns]
inline constexpr int64_t kFirstTrialNs = 300 * kMillisecond;
// Pause between attempts to explore, doubled by each that did not help. [ns]
inline constexpr int64_t kExploreEveryNs = 2 * kSecond;
// Pause between attempts to thin. [ns]
inline constexpr int64_t kThinEveryNs = 5 * kSecond;
// The longest pause between attempts. [ns]
inline constexpr int64_t kEveryMaxNs = 60 * kSecond;
// The seed makes pauses longer or shorter by up to this, so that two connections get out of step. [part of the
// pause]
inline constexpr double kJitter = 0.25;

// == docs/lanes.md: explore

// Lanes that exploring tries at once, at the least. [lanes]
inline constexpr int kExploreMin = 4;
// How long the lanes of an attempt may take to open. [ns]
inline constexpr int64_t kOpenWithinNs = kSecond;
// The least gain of an attempt that helps: half of what one more lane brings where each is limited, but never less than
// this. [part of the total]
inline constexpr double kGainMin = 0.05;
// The most gain that an attempt must bring. [part of the total]
inline constexpr double kGainMax = 0.10;
// The gain must also be this many times the noise. [times the noise; NoiseOpensNoLanesOnOnePath: in noise of 5 to 20 %
// one path had 16 to 31 lanes without it, 4 to 5 with it]
inline constexpr double kGainNoise = 1.5;
// An attempt that takes more than this from the process's other connections has not helped. [part of the gain;
// bench/fabric: two connections that share a card took it from each other until both had 32 lanes]
inline constexpr double kTakenMax = 0.5;
// Attempts in a row that did not help before a pause; 1 where lanes can't be opened. [attempts]
inline constexpr int kVainMax = 3;
// A round trip that is longer than the least by less than this shows no queue. [us]
inline constexpr int64_t kQueueMinUs = 500;
// A new lane whose queue is shorter than this has found an empty path. [part of what the others wait for in their
// queue; bench/netns/paths.sh, 200 Mbit/s: 0.1 to 1 on one path, 0.003 on a free one of eight]
inline constexpr double kEmptyPart = 0.05;
// Lanes are in one queue if none waits this many times as long as another. [times; the same: 1.02 to 1.4 on one path,
// 2 and more on eight]
inline constexpr double kAlike = 1.45;
// Attempts that find the same queue, before a long pause. [attempts; APathThatFallsAndComesBack: with 2 of them one of
// 40 runs had half of what there was, with 3 none]
inline constexpr int kSameQueueMax = 3;
// The first long pause; each one doubles. If the total falls, it ends after this. [ns]
inline constexpr int64_t kSameQueueNs = 180 * kSecond;
// The most that the long pause grows to. [ns]
inline constexpr int64_t kSameQueueMaxNs = 600 * kSecond;
// Long pauses after which exploring ends. A path change leaves one. [pauses; bench/fabric: 0.1 dials a second and host]
inline constexpr int kPausesMax = 3;
// Exploring that has ended is not restarted by a path change sooner than this after the latest: other connections that
// explore cause such changes. [ns; as kPausesMax]
inline constexpr int64_t kRestartEveryNs = 30 * kSecond;
// Exploring that has ended also starts again after this: the network may have changed unnoticed. [ns; as kPausesMax]
inline constexpr int64_t kExploreAgainNs = 3600 * kSecond;

// == docs/lanes.md: spread

// A lane with data that brings this many times less than the median is crowded, if the network was never the
// connection's limit; else the slowest is. [times; bench/fabric, ring-1]
inline constexpr double kCrowded = 1.12;
// Looks until it is known what a lane brings. [looks; as kCrowded: a flow's luck lasts 0.3 s there]
inline constexpr int kSpreadKnownLooks = 12;
// A new lane carries for this long before it is compared, kOpenWithinNs at the most, and together with the crowded one
// until kSettleNs are left: in slow start 10 segments become 15 MB in flight. [round trips]
inline constexpr int64_t kSlowStartRounds = 10;
// Looks in which a new lane carries in the place of the crowded one. [looks; as kCrowded; with 3 of them ring-1 of 64
// hosts had 0.93 of the best fixed number, with 5 0.94]
inline constexpr int kSpreadLooks = 5;
// A lane takes the place of the crowded one if it brings this many times as much. [times; as kCrowded]
inline constexpr double kFaster = 1.1;
// From one trial to spread to the next. [ns]
inline constexpr int64_t kSpreadEveryNs = 500 * kMillisecond;
// How long trials to spread go on after the first could begin. [ns; bench/fabric: 0.1 dials a second and host; with
// 24 s alltoall of 64 hosts still dialled 2.2 times after 20 s, and ring-1 had no more than with this]
inline constexpr int64_t kSpreadForNs = 16 * kSecond;
// A path change restarts trials to spread, at the earliest this long after the first. [ns; as kSpreadForNs]
inline constexpr int64_t kSpreadAgainNs = 120 * kSecond;
// The most trials to spread in a row that do not help. [trials; calibration_test: eight paths had 0.962 of their sum
// with 8 of them, 0.966 with this, 0.975 without trials]
inline constexpr int kSpreadVainMax = 4;

// == docs/lanes.md: thin

// Thinning pauses one of this many lanes, and fewer if those were missed. [lanes]
inline constexpr size_t kThinPart = 6;
// Thinning leaves this few lanes alone, and spreading fewer: a trial would cost them a large part of their traffic; 1
// where lanes can't be opened. [lanes; bench/netns/paths.sh, paths of 400, 400, 400 and 40 Mbit/s, where one falls and
// returns: 0.90 to 0.97 of the sum where fewer are tried, 0.97 to 0.99 like this]
inline constexpr size_t kFewLanes = 4;
// Without a lane that is not needed, the total falls by this part of what the lane seemed to bring. [part of what it
// brought]
inline constexpr double kOwnPart = 0.7;
// A loss below this does not count. [part of the total]
inline constexpr double kMissedMin = 0.02;
// A loss above this counts. [part of the total; bench/netns/paths.sh, eight paths of 200 Mbit/s, together with kLame:
// 0.83 and 0.90 of the sum with 0.05, 0.93 with this]
inline constexpr double kMissedMax = 0.03;
// If the total falls by more than this many times the noise, lanes are missed after one look. [times the noise; as
// kGainNoise]
inline constexpr double kSureNoise = 4;
// If it falls by less, lanes are missed after this many looks in a row. [looks; as kGainNoise]
inline constexpr int kThinLooks = 3;
// Single lanes that are missed, in a row, before thinning ends; 1 where lanes can't be opened. [lanes]
inline constexpr int kThinVainMax = 3;

// == docs/lanes.md: lame

// A lane that brings less than this is lame. [part of the median; bench/netns/paths.sh, eight paths of 200 Mbit/s,
// together with kMissedMax: 0.83 and 0.90 of the sum with a fifth, 0.93 with this]
inline constexpr double kLame = 0.05;
// A lane that held nothing in one of this many steps of a look is not lame. [steps; bench/netns/paths.sh, messages of
// 128 KiB: 0.74 and 0.77 of the sum where lanes that are given little count as lame, 0.83 and 0.90 like this]
inline constexpr int kDryPart = 4;
// How long a lame lane is paused the first time, doubled each time. [ns]
inline constexpr int64_t kLameForNs = 500 * kMillisecond;
// The longest pause of a lame lane. [ns]
inline constexpr int64_t kLameForMaxNs = 2 * kSecond;
// A lane that was lame this often in a row is moved to another path. [times; APathThatFallsAndComesBack: a path may
// recover, and its port is known to lead to it]
inline constexpr int kLameMove = 20;
// A lane that was lame this often in a row is closed. [times]
inline constexpr int kLameMax = 40;

// == docs/lanes.md: watch

// A look below this is low. [part of the average]
inline constexpr double kFallen = 0.85;
// A look above this is high. [part of the average]
inline constexpr double kRisen = 1.4;
// Low or high looks in a row that say that the path has changed. [looks]
inline constexpr int kLowLooksMax = 3;
// The same once exploring has ended. [looks; bench/fabric, two-jobs of 8 hosts: while collectives of two jobs meet,
// each is slow for 0.6 s; with 3 looks 8 of 20 seeds had more than 0.1 dials a second and host, with this none of 40]
inline constexpr int kLowLooksSettled = 7;
// How much of its difference a look adds to the average. [part of the difference]
inline constexpr double kAverageGain = 0.25;
// Where the average is below this, the next attempt to explore comes soon. [part of the best]
inline constexpr double kBelowBest = 0.9;
// From then to that attempt. [ns]
inline constexpr int64_t kBelowBestEveryNs = 2 * kSecond;
// How much the best fades with each look: an old best may never come back. [part of the best]
inline constexpr double kBestFades = 0.002;
// Past looks that give the noise, and what an attempt is compared with. [looks]
inline constexpr size_t kPastLooks = 8;
// Noise counts as at most this. [part of the total]
inline constexpr double kNoiseMax = 0.25;

// == docs/lanes.md: dials

// Sockets that a connection may dial at once to find its number of lanes. [sockets; TwoConnectionsShareTheirPaths: with
// half of it one of the two ran out first, and had two thirds of its part]
inline constexpr int kDialsAtOnce = 128;
// How many more a connection may dial each minute. [sockets a minute]
inline constexpr int kDialsEachMinute = 8;

}  // namespace tcpx::tuning
