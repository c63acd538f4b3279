// stall_probe.h: why a connection's oldest request stalls: gathers the evidence, and asks the peer.
//
// Purpose: what verdict.h judges, and what stall_group.h shares. While requests move nothing is asked but whether our
//          threads get CPU, and without requests, nor a peer that asks, nothing at all.
// Threads: the reactor, with the connection's link held. Lifetime: borrows all three, which outlive it.
// Units: nanoseconds of MonotonicNanos. Errors: what can't be found out is left out of the evidence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net_socket/comm/connection_end.h"
#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/health/stall_group.h"
#include "net_socket/health/verdict.h"
#include "net_socket/message/flight.h"

namespace tcpx {

class StallProbe {
 public:
  StallProbe(const ConnectionSetup* setup, ConnectionEnd* end, ConnectionFailure* failure)
      : setup_(setup), end_(end), failure_(failure) {}

  // `since_ns`: since when the oldest request has been stalled; 0: it is not.
  void LookInLoop(const Flight& flight, int64_t since_ns, int64_t now_ns);
  // What the peer waits for, or asks.
  void HearInLoop(const std::string& text, int64_t now_ns);
  // The health socket is lost, or another one is up: what was asked on the one before is not answered.
  void HealthChangedInLoop() { asked_ns_ = 0; }
  // The connection has failed: it waits for nobody.
  void LeaveInLoop();
  // True when a line is due: the stall is new, or the cause or culprit of one that was reported has changed, which is
  // reported at doubling intervals.
  bool Reports(bool stalled, int64_t now_ns);

  // What this rank waits for, as far as this connection knows; not known: it moves, or nobody knows.
  const WaitRoot& root() const { return root_; }
  // When the peer last said of what stalls now that it has posted nothing; 0: it has not.
  int64_t peer_waits_ns() const { return heard_ && peer_.posted == 0 ? heard_ns_ : 0; }
  std::string Why() const { return DescribeRoot(ThisProcessName(), root_); }
  int64_t since_ns() const { return since_ns_; }
  // The lane that the evidence is of.
  int lane() const { return lanes_.lane; }
  StallGroup::Key key() const { return key_; }

 private:
  // What was found of the lanes.
  struct Lanes {
    std::vector<LaneEvidence> evidence;
    int lane = 0;            // silent for longest, at the latest look that found one
    bool was_idle = false;   // at the look before
    bool idle_here = false;  // at both
    int64_t at_ns = 0;       // when it was gathered; 0: not
  };
  // What was last reported of this stall.
  struct Reported {
    WaitRoot root;
    int64_t at_ns = 0;  // 0: it was not reported
    int64_t again_ns = 0;
  };

  void Judge(int64_t now_ns);
  void JudgeUnposted(int64_t now_ns);
  StallEvidence Gather(int64_t now_ns);
  void GatherLanes(int64_t now_ns);
  LaneEvidence GatherLane(int lane, int64_t now_ns, bool* holds) const;
  void GatherHealth(int64_t now_ns, StallEvidence* evidence);
  void Put(int64_t now_ns);
  // How much is done and posted here.
  void Count(StallMember* member) const;
  // Whose CPU is short, and whether any is.
  void LookAtCpu(int64_t now_ns);
  int64_t EveryNs() const;

  const ConnectionSetup* const setup_;
  ConnectionEnd* const end_;
  ConnectionFailure* const failure_;
  const StallGroup::Key key_ = StallGroup::NewKey();
  StallMember* place_ = nullptr;  // the stall group's; null: not there
  Flight flight_;
  int64_t since_ns_ = 0;
  int64_t stuck_ns_ = 0;  // nothing is stalled here, and yet verdict_ holds; 0: it does not
  Verdict verdict_;
  WaitRoot root_;
  Lanes lanes_;
  bool heard_ = false;  // peer_ is an answer to the present stall
  WaitNews peer_;
  int64_t heard_ns_ = 0;      // when the peer last said anything
  int64_t root_news_ns_ = 0;  // when peer_'s root was last a new one
  int64_t asked_ns_ = 0;      // the oldest question without an answer; 0: none
  Reported reported_;
};

}  // namespace tcpx
