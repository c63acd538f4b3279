// health_dial.h: dials a health socket again that was lost, in the name of one connection.
//
// Purpose: the hello is that of a first health socket, proven like it; its ticket and connection tell the acceptor that
//          this is no stranger, also after the end of its listen (resumed_lanes.h). Each attempt goes by the
//          connection's own interface first, then by another one of the device.
// Threads: made anywhere, and destroyed anywhere after HaltInLoop; the rest in the reactor.
// Units:   nanoseconds.
// Errors:  to HealthPeer::RefusedInLoop: at once if the peer's process no longer knows the connection, or if its port
//          refuses and the old socket has ended in order, as when a process ends (then for all connections, by
//          HealthPeer::GoneInLoop); also after a while of refusals. Never while a lane of that process is up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "net_socket/connect/dial_lane.h"
#include "net_socket/health/health_peer.h"

namespace tcpx {

// The settings of a health socket whose other end has, or uses, these features.
HealthSettings HealthSettingsFor(const Options& options, uint64_t features);

class HealthDial final : public HealthRedialler,
                         public std::enable_shared_from_this<HealthDial>,
                         private DialLane::Owner {
 public:
  // `paths`: of the connection's lanes, which were dialled by `setup`.
  HealthDial(const DialSetup& setup, const std::vector<LanePath>& paths);

  void DialInLoop(std::shared_ptr<HealthPeer> health) override;
  void HaltInLoop() override;

 private:
  void LaneAnswered(DialLane* lane) override;
  const LanePath* OtherPath(const DialLane& lane) override;
  void BeginAnew(absl::Status why) override { Finish(std::move(why)); }
  void Finish(absl::Status status) override;
  // A device on the path that resets flows refuses, too.
  bool RefusalIsFinal() override;
  void NotRefused() override { health_->redials_in_loop().arbiter().NotRefused(); }
  int64_t TakeDialTurn() override;
  void AwaitFirstDial();
  bool Connected(const DialLane&, Hello*) override;
  // Not at once: the lane is on the stack.
  void Soon(std::function<void(HealthPeer* health)> function);

  const DialSetup dialling_;
  std::vector<LanePath> paths_;         // one by each interface
  std::shared_ptr<HealthPeer> health_;  // while it dials
  std::unique_ptr<DialLane> lane_;      // the same
  bool beside_ = false;  // a hello was said while the old socket was up: its end may be the acceptor's answer
  bool gone_ = false;    // the latest refusal was that of a process that has ended
  Reactor::TimerId timer_{0, 0};
};

}  // namespace tcpx
