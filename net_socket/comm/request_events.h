// request_events.h: a comm's events for a profiler, where there is one; else every call is a no-op.
//
// Threads: under the comm's mutex; what lanes count goes to TransferEvents itself.
// Lifetime: the events die with this. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_socket/message/transfer_events.h"

namespace tcpx {

class RequestEvents {
 public:
  // Before the first request: from now on a profiler listens.
  void Record(const EventRecorder::Settings& settings) { recorder_ = std::make_unique<EventRecorder>(settings); }

  // A lane has its first socket.
  void NoteLane(int lane, int fd) {
    if (recorder_ != nullptr) recorder_->NoteLane(lane, fd);
  }
  // Begins the events of one isend, or of one buffer of an irecv; null unless a profiler listens. `slot` is below
  // settings.transfers.
  TransferEvents* Begin(size_t slot, void* parent) {
    return recorder_ == nullptr ? nullptr : recorder_->Begin(slot, parent);
  }
  // All of the message goes over `lane`: reported at once. A null `events` is a no-op.
  void CountWhole(TransferEvents* events, int lane, uint64_t message_bytes) {
    if (events != nullptr) recorder_->CountWhole(events, lane, message_bytes);
  }
  // Not of a failed connection: NCCL 2.26 and 2.27 drop the operation that got the error, and with it the parents of
  // requests that are never tested again.
  void Publish() {
    if (recorder_ != nullptr) recorder_->Publish();
  }
  // Right before a request is reported done, early or not, or its error is returned. A repetition is a no-op.
  void End(TransferEvents* events) {
    if (events != nullptr) recorder_->Stop(events);
  }
  void Drop() {
    if (recorder_ != nullptr) recorder_->Drop();
  }

 private:
  std::unique_ptr<EventRecorder> recorder_;  // null: no profiler
};

}  // namespace tcpx
