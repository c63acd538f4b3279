// phase.h: how far apart the two drivers' cores are right now.
//
// Purpose: virtual machines move virtual CPUs: two cores are sometimes near each other and sometimes far, for a second
//          to twenty, and everything that crosses them changes with it by a factor of two or more. A comparison holds
//          only within one phase, so each sample is bracketed by two readings: the time one cache line takes from one
//          driver to the other.
// Threads: a probe needs both drivers at once, each pinned to a CPU of its own; the rest is pure.
// Units:   nanoseconds per bounce (one way: half of a there and back). Errors: none.
// Source:  limits from measurements on a two-core x86-64 VM (27 to 31 near, 160 to 200 far). Where both kinds of
//          readings lie between them there is one phase only, kBetween.
#pragma once

#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

inline constexpr double kNearBelowNs = 75;
inline constexpr double kFarAboveNs = 120;

enum class Phase { kNear, kBetween, kFar, kUnchecked, kMixed };
inline constexpr int kKeptPhaseCount = 4;  // all but kMixed, whose samples are dropped

const char* PhaseName(Phase phase);
Phase ClassifyBounce(double nanoseconds);
// The phase of a sample from the readings around it.
Phase Combine(Phase before, Phase after);

// Bounces the page's ball; the workers of rank 0 and 1 call it at the same time. Rank 0 gets the time per bounce, rank
// 1 gets 0.
double ProbeBounceNs(SharedPage* page, int rank);

}  // namespace bench
}  // namespace tcpx
