// receive_comm.h: the receiving end of a connection.
//
// Purpose: irecv, test and close of NCCL's receive comm. Lane 0 is read by the calling thread inside test; bulk lanes
// by the
//          progress pool or, without one, by the calling thread too.
//
// Budget:  Receive and Test: no allocation (but a staging buffer when the pool has none), no lock that waits, at most
// one
//          system call per lane.
// Threads: as Comm.
// Errors:  as Comm. An orderly end of the peer is an error only for a posted receive that it leaves without its data.
#ifndef TCPX_NET_SOCKET_RECEIVE_COMM_H_
#define TCPX_NET_SOCKET_RECEIVE_COMM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/bulk_lane.h"
#include "net_socket/comm.h"
#include "net_socket/landing.h"
#include "net_socket/receive_lane.h"
#include "net_socket/request.h"

namespace tcpx {

class ReceiveComm final : public Comm {
 public:
  explicit ReceiveComm(ConnectionSetup setup);

  absl::Status Receive(const ReceiveArgs& args, Request** request);
  absl::Status Test(Request* request, bool* done, int* sizes) override;

 private:
  const char* role() const override { return "receive"; }
  bool Idle() override;
  bool InFlight(const MemoryRegion* region) override;
  void Quiesce() override;
  void StopWatching() override;
  void TellPeer(const absl::Status& status) override;
  Flight FlightNow() const override { return table_.FlightNow(); }
  bool LaneEnded() const override;

  void Drive(const Landing& wanted);
  void PumpLaneZero(const Landing& wanted);
  void ChooseAcks(bool lone);
  bool AllEnded() const;
  void Finish(ReceiveRequest* request, int* sizes);

  const bool caller_driven_;
  RequestPool<ReceiveRequest> requests_;
  LandingTable table_;
  ReceiveLane lane_zero_;
  std::vector<std::unique_ptr<BulkReceiveLane>> bulk_;
  int bulk_posted_ = 0;  // posted receives with room for more than an express message
  unsigned passes_ = 0;
  int lone_score_ = 0;
  int64_t acks_delayed_at_ns_ = 0;  // 0: not delayed
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RECEIVE_COMM_H_
