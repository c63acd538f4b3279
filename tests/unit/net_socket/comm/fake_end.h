// fake_end.h: a connection's end that says what a test wants, and a setup over sockets of the test's own.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net_socket/comm/connection_end.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/runtime.h"

namespace tcpx {

class FakeEnd final : public ConnectionEnd, public EndLanes {
 public:
  EndLanes* lanes() override { return this; }
  Flight FlightNow() const override { return flight; }
  uint64_t MessagesDone() const override { return done; }
  int CallerThread() const override { return 0; }
  void LaneOpened(int) override {}
  void LaneResumed(int, Seals*) override {}
  void LaneLost(int) override {}
  void PeerLeft() override {}
  void PeerIsUnheard(int) override {}

  PoolLane* pool_lane(int) const override { return nullptr; }
  void Make(int) override {}
  absl::Status Replace(int, SocketOffer) override { return absl::OkStatus(); }
  const LaneCounts* counts(int) const override { return nullptr; }
  int64_t pace(int) const override { return 0; }
  bool holds(int) const override { return holding; }
  bool parked(int) const override { return parking; }
  bool AnyEnded() const override { return lane_ended; }
  std::vector<LanePace> Paces() const override { return paces; }
  void TellPeer(absl::string_view why) override { told.push_back(std::string(why)); }

  uint64_t done = 0;
  Flight flight;
  std::vector<LanePace> paces;
  bool lane_ended = false;
  bool holding = false;
  bool parking = false;
  std::vector<std::string> told;
};

// What was logged since the last call; the sink for a Communicator.
inline std::vector<std::string>& Logged() {
  static std::vector<std::string> lines;
  return lines;
}
inline void LogLine(LogLevel level, uint64_t, const char*, int, const char* text) {
  if (level == LogLevel::kWarn || level == LogLevel::kInfo) Logged().push_back(text);
}

// The tie of a connection that housekeeping does not reach.
inline const Tie& NoTie() {
  static Tie tie;
  tie.Cut();
  return tie;
}

// So many lanes without a socket.
inline ConnectionSetup FakeSetup(Runtime* runtime, std::shared_ptr<FailureGroup> group = nullptr,
                                 bool repeat_warnings = false, size_t lanes = 1) {
  auto communicator = std::make_shared<Communicator>();
  communicator->log = LogLine;
  communicator->group = std::move(group);
  communicator->repeat_warnings = repeat_warnings;
  ConnectionSetup setup;
  setup.runtime = runtime;
  setup.communicator = std::move(communicator);
  setup.lanes.resize(lanes);
  return setup;
}

}  // namespace tcpx
