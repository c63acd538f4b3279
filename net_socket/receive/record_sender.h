// record_sender.h: what a receiving end says on lane 0: credits, and at last an error.
//
// Purpose: sends the announcements of grouped receives (credits.h) as far as the kernel takes them, and keeps the rest.
//          An error record goes neither into the middle of a credit nor in front of the answer of a new socket.
// Threads: the calling thread, under the comm's mutex; SendError from any.
// Lifetime: borrows the descriptor and the owner. Units: bytes.
// Errors:  Send: kInternal where what must be sealed can't be. A peer that has gone needs no credits: reading says what
//          that means.
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
#include "net_socket/seal/seals.h"

namespace tcpx {

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
  // there may be one.
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

}  // namespace tcpx
