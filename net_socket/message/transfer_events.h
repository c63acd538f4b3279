// transfer_events.h: what a profiler learns of each request: how many of its bytes travelled over which socket.
//
// Purpose: the thread that moves a lane counts the bytes of a message that the lane has taken (Count, atomics only).
//          The calling thread turns the counts into events: one per lane, started with its first bytes, updated when
//          there are more, stopped before the request is reported done.
//
//   TransferEvents* events = recorder.Begin(slot, parent);  // isend, irecv
//   events->Count(lane, bytes, message_bytes);              // any thread
//   recorder.Publish();                                     // test
//   recorder.Stop(events);                                  // before done, or before the request's error, is returned
//
// A request has at most kEventsMax events, a limit of profilers. Where a connection has more lanes, the last event
// counts for all lanes from kEventsMax - 1 on and its fd is -1.
// Threads: Count by any; all else by the calling thread, under its comm's mutex.
// Lifetime: a transfer's slot may begin anew once the whole of its message was counted and has landed or was sent; that
//          may be after Stop.
// Units: bytes of payload, without headers. Errors: none; what the profiler returns is dropped.
// Source:  NCCL 2.26 to 2.30. 2.26 takes an update for a stop: where it may be NCCL (`updates` false) an event starts
//          only when its length is final, and no update is sent.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nccl/plugin_api.h"
#include "net_socket/message/flight.h"

namespace tcpx {

class EventRecorder;

// One request, or one buffer of a grouped receive.
class TransferEvents {
 public:
  static constexpr int kEventsMax = 8;

  // `lane` has taken `bytes` of the message, which is `message_bytes` long. Before they count as landed or sent.
  void Count(int lane, uint64_t bytes, uint64_t message_bytes);

 private:
  friend class EventRecorder;

  void Take(int lane, uint64_t bytes, uint64_t message_bytes);
  bool AnyCounted() const { return message_bytes_.load(std::memory_order_relaxed) != kUnknownBytes; }
  bool AllCounted() const;
  bool started(size_t event) const { return (started_ >> event & 1) != 0; }

  // Hot, and all that Begin resets. By event: bytes, and chunks above them, so that a chunk of no bytes counts too.
  std::array<std::atomic<uint64_t>, kEventsMax> counted_{};
  std::atomic<uint64_t> message_bytes_{kUnknownBytes};  // until the first count
  uint32_t started_ = 0;                                // bits
  int place_ = -1;                                      // among the recorder's open transfers; -1: stopped
  void* parent_ = nullptr;
  EventRecorder* recorder_ = nullptr;
  // For each started event: the profiler's handle (null: it does not want the event), and the bytes that it knows of.
  std::array<void*, kEventsMax> handles_{};
  std::array<uint64_t, kEventsMax> reported_{};
};

// All requests of one comm. Unless a profiler listens every call is a no-op.
class EventRecorder {
 public:
  struct Settings {
    ProfilerSink sink = nullptr;  // null: nobody listens
    bool updates = false;         // true exactly when NCCL knows updates
    bool receive = false;
    std::vector<int> fds;  // by lane; below 0: without a socket yet
    int transfers = 0;     // slots
  };

  EventRecorder() = default;
  explicit EventRecorder(const Settings& settings) { Record(settings); }

  // Before the first request: from now on a profiler listens.
  void Record(const Settings& settings);
  // A lane has its first socket. Nothing was counted for it before.
  void NoteLane(int lane, int fd);

  // Of one isend, or of one buffer of an irecv. Null where `parent` is: then nothing is reported of this request, and
  // calls that are given it are no-ops. `parent` must be in flight until Stop.
  TransferEvents* Begin(size_t slot, void* parent);
  // The same as Count for all of the message, and Publish for this transfer alone.
  void CountWhole(TransferEvents* transfer, int lane, uint64_t message_bytes);
  // Starts and updates the events of all open transfers that were counted since the last time. Not of a failed
  // connection: NCCL 2.26 and 2.27 drop the operation that got the error, and with it the parents of requests that are
  // never tested again.
  void Publish();
  // Tells what is left to tell and stops the transfer's events: right before a request is reported done, early or not,
  // or its error is returned. Stopped before: a no-op.
  void Stop(TransferEvents* transfer);
  // From now on nothing is reported: the operations of the parents may be gone.
  void Drop();

 private:
  friend class TransferEvents;

  void Close(TransferEvents* transfer);
  void Report(TransferEvents* transfer);
  void Tell(TransferEvents* transfer, size_t event, EventStep step);

  Settings settings_;
  size_t events_per_transfer_ = 0;
  std::array<int, TransferEvents::kEventsMax> fds_{};
  std::unique_ptr<TransferEvents[]> transfers_;
  std::vector<TransferEvents*> open_;  // never more than it has room for
  bool dropped_ = false;
  uint64_t published_ = 0;
  std::atomic<uint64_t> counts_{0};  // calls of Count
};

}  // namespace tcpx
