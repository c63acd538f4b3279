// express_receive_lane.h: lane 0 of a receiving end: small messages, and what this end says.
//
// Purpose: reads lane 0 for the calling thread, sets its socket for the pattern at which the peer sends, and sends
//          records on it.
// Budget:  Pump: no allocation (but a staging buffer when the pool has none), no lock that waits, at most one read.
// Threads: the calling thread, under the comm's mutex; of records() and stream() what those allow, from any.
// Lifetime: owned by its connection. Borrows the descriptor, the owner, the table and the pool.
// Errors:  to LaneOwner::FailLane, but for Replace's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/receive/pattern_tuning.h"
#include "net_socket/receive/receive_stream.h"
#include "net_socket/receive/record_sender.h"

namespace tcpx {

class ExpressReceiveLane {
 public:
  struct Settings {
    int fd = -1;
    PathProfile path;
    bool heals = false;
    bool sealed = false;     // nothing is said in the clear
    bool announces = false;  // groups of receives
  };

  // What seals the first socket is taken out of `seals`.
  ExpressReceiveLane(LaneOwner* owner, const Settings& settings, Seals* seals, PostedReceiveTable* table,
                     StagePool* stages);

  // Reads what is there, once, for `wanted`, and sends what waits.
  void Pump(const PostedReceive& wanted);
  // Where groups are announced.
  void Announce(uint64_t first_sequence, const int* tags, int count) {
    if (!records_.announces()) return;
    records_.Push(first_sequence, tags, count);
    SendRecords();
  }
  // The lane goes on with another socket. Not OK: it can't.
  absl::Status Replace(SocketOffer offer);
  // From here on the socket is polled, and every byte must count.
  void StopTuning() { tuning_.Stop(); }

  RecordSender& records() { return records_; }
  const RecordSender& records() const { return records_; }
  const ReceiveStream& stream() const { return stream_; }

 private:
  void Took(size_t bytes);
  void SendRecords();
  absl::Status TrySendRecords();

  LaneOwner* const owner_;
  ReceiveStream stream_;
  PatternDetector pattern_;
  PatternTuning tuning_;
  RecordSender records_;
};

}  // namespace tcpx
