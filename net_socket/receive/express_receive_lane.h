// express_receive_lane.h: lane 0 of a receiving end: small messages, and what this end says.
//
// Purpose: reads lane 0 for the calling thread, sets its socket for the pattern at which the peer sends, and sends
//          records on it.
// Budget:  Pump: no allocation (but a staging buffer when the pool has none), no lock that waits, at most one read.
// Threads: the calling thread, under the comm's mutex; of records() and stream() what those allow, from any.
// Lifetime: owned by its connection. Borrows the descriptor, the owner, the table and the pool.
// Errors:  to LaneOwner::FailLane, but for Replace's.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "net_socket/message/credits.h"
#include "net_socket/message/lane_owner.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/receive/pattern_tuning.h"
#include "net_socket/receive/receive_stream.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

// What a receiving end says on lane 0: credits, and at last an error. Sends the announcements of grouped receives
// (credits.h) as far as the kernel takes them, and keeps the rest. An error record goes neither into the middle of a
// credit nor in front of the answer of a new socket. A peer that has gone needs no credits: reading says what that
// means.
// Threads: the calling thread, under the comm's mutex; SendError from any.
class RecordSender {
 public:
  // `sealed`: nothing is said in the clear; `sealer` null: then nothing at all, until there is one.
  RecordSender(const LaneOwner* owner, int fd, bool sealed, std::unique_ptr<Sealer> sealer)
      : owner_(owner), fd_(fd), sealed_(sealed || sealer != nullptr), sealer_(std::move(sealer)) {}

  // From here on groups are announced. `keeps`: what the kernel has taken stays here, for the next socket.
  void Announce(bool keeps) { credits_ = std::make_unique<CreditQueue>(keeps); }
  // What is said is sealed, or not said.
  bool sealed() const { return sealed_; }
  bool announces() const { return credits_ != nullptr; }
  // One more group can be announced.
  bool HasRoom() const { return !announces() || credits_->HasRoom(); }
  // A group, which waits for Send.
  void Push(uint64_t first_sequence, const int* tags, int count) { credits_->Push(first_sequence, tags, count); }
  // Something was announced that the kernel has not taken.
  bool waits() const { return announces() && !credits_->empty(); }
  // What a send found the socket broken by, once: the kernel tells an error to one call, and later reads find an end.
  // 0: none did.
  int TakeError() { return std::exchange(error_, 0); }
  // Sends what waits. *said: the socket has sent something. What a broken one does not take goes by the next one, where
  // there may be one. kInternal: what must be sealed can't be.
  absl::Status Send(bool* said);
  // Nothing can be sent now.
  void Hold() { may_be_cut_.store(waits(), std::memory_order_relaxed); }

  // `replace` lets the descriptor name the next socket, which has `seals` (null: it is not sealed), and answers the
  // peer: nothing else is said meanwhile.
  template <typename Replace>
  absl::Status GoOn(Seals* seals, Replace replace) {
    MutexLock lock(mutex_);
    if (seals != nullptr) sealer_ = std::move(seals->sealer);
    return replace();
  }
  // The next socket goes on after the first `taken` bytes of all credits, modulo 2^32. False: the peer can't say so.
  bool Rewind(uint32_t taken) { return !announces() || credits_->Rewind(taken); }

  // The last: an error record, which tells the peer of a failure, and the end.
  void SendError(absl::string_view why);

 private:
  ssize_t SendBytes(const char* data, size_t bytes);
  bool CantSeal();

  const LaneOwner* const owner_;
  const int fd_;
  const bool sealed_;
  int error_ = 0;
  std::unique_ptr<CreditQueue> credits_;  // null: receives are not grouped
  std::atomic<bool> may_be_cut_{false};   // a record may be on the wire in part
  // What is sealed goes by it. Held from the next socket until its answer has gone.
  Mutex mutex_;
  std::unique_ptr<Sealer> sealer_ TCPX_GUARDED_BY(mutex_);
};

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
  ExpressReceiveLane(LaneOwner* owner, const Settings& settings, Seals* seals, Destination* destination,
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
