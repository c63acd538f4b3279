// pairs.h: one pair of interfaces of two hosts: whether they reach each other, how fast, what passes.
//
// Threads: one. Units: as Between's. Errors: findings.
#pragma once

#include "tools/doctor/between.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/greeting.h"
#include "tools/doctor/patient.h"

namespace tcpx {
namespace doctor {

inline constexpr int kPairsMax = 64;

// All pairs of one family, the first kPairsMax of them.
void CheckPairs(const Patient& patient, const PeerFacts& here, const PeerFacts& there, Report* report,
                Between* between);

}  // namespace doctor
}  // namespace tcpx
