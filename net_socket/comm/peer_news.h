// peer_news.h: what the health socket tells one connection of its peer, and asks it.
//
// Threads: as HealthUser says. Lifetime: owned by its comm; borrows all that it is given.
// Errors:  to the connection's failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/lane_sockets.h"
#include "net_socket/comm/progress_check.h"
#include "net_socket/health/health_members.h"

namespace tcpx {

class PeerNews final : public HealthUser {
 public:
  class Owner {
   public:
    // The peer is gone, and what is still to be sent does not arrive.
    virtual void PeerLeft() = 0;
    // Another socket is to be tried for the lane. By the reader of the health socket.
    virtual void PeerIsUnheard(int lane) = 0;

   protected:
    ~Owner() = default;
  };

  // `healing` null: no lane gets another socket.
  PeerNews(ConnectionSetup* setup, const Tie& tie, Owner* owner, LaneHealing* healing, LaneSockets* sockets,
           ConnectionFailure* failure, ProgressCheck* progress)
      : setup_(setup),
        self_(tie.To(this)),
        owner_(owner),
        healing_(healing),
        sockets_(sockets),
        failure_(failure),
        progress_(progress) {}

  void PeerLost(const absl::Status& how) override;
  void PeerFailed(const std::string& cause, bool parting) override {
    parting ? failure_->NotePeerParted(cause) : failure_->FailWithPeer(cause);
  }
  void PeerLeft(const std::vector<uint64_t>& taken) override;
  void PeerIsUnheard(int lane) override { owner_->PeerIsUnheard(lane); }
  void PeerSaysWaits(const std::string& news) override;
  bool HealthLost() override;
  bool HealthBack(bool counts) override;
  int64_t LanesGoneNs(bool* in_order) override;
  bool AnyLaneUp(bool read_out) override;
  bool HeardWithin(int64_t ns) override;

 private:
  // True: a lane is lost, and does not come back.
  bool NoteLeft(const std::vector<uint64_t>& taken);

  ConnectionSetup* const setup_;
  const Link<PeerNews> self_;
  Owner* const owner_;
  LaneHealing* const healing_;
  LaneSockets* const sockets_;
  ConnectionFailure* const failure_;
  ProgressCheck* const progress_;
};

}  // namespace tcpx
