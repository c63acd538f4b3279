// rma_sender.h: sends to one peer of a group: dials at first use, then sends batches of records and long payloads.
//
// Purpose: the first operation goes at once, unless its payload waits for others; those that come before the caller's
//          next test or progress share a message. Takes all that is added: what the connection has no room for waits.
// Threads: under the group's mutex. Forget waits for a bounded time.
// States:  unused -> open (dialling, then up) -> closed.
// Units:   bytes.
// Errors:  as PluginApi's Connect, Send and Test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nccl/plugin_api.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/request.h"

namespace tcpx {

// Between two looks of a thread that waits. [us; a guess]
inline constexpr unsigned kRmaNapUs = 50;

class RmaSender {
 public:
  // `handle`: the peer's; it takes a copy. `hello`: the first record.
  RmaSender(PluginApi* net, Context* context, int device, const void* handle, const RmaRecord& hello);
  // The class of connections that are dialled from now on.
  void SetTrafficClass(int traffic_class) { options_.traffic_class = traffic_class; }

  // Sends `record` and its payload at `data`, in `region`, where it has one. `request`, which may be null, is finished
  // once the payload may be overwritten.
  void Add(const RmaRecord& record, const char* data, const RmaRegion* region, RmaRequest* request);
  // Moves everything: dials, sends what waits, asks what was sent. True in *moved where something was.
  absl::Status Progress(bool* moved);
  // What was added goes now, unless the connection is busy, or a payload below kRmaAloneBytes follows the batch: that
  // waits for the caller's next test or progress.
  absl::Status Flush();

  bool used() const { return state_ != State::kUnused; }
  bool up() const { return comm_ != nullptr; }
  // Nothing waits, and the kernel has all.
  bool idle() const { return !owes() && sent_.empty(); }
  // Something waits to be sent.
  bool owes() const { return !batches_.empty(); }
  // Operations that the kernel has not taken yet.
  size_t waiting() const;
  // Too much waits: payloads should stay where they are until their turn.
  bool crowded() const { return batches_.size() > kCrowdedBatches; }
  // More than this group may have under way.
  bool overrun() const { return batches_.size() > kOverrunBatches; }
  Comm* comm() const { return comm_; }
  // Starts to dial.
  void Open();
  // The peer has said bye: its connection may end.
  void PeerClosed() { peer_closed_ = true; }
  // The last record. From now on it is no error where the peer has closed, and what waits for it is dropped.
  // `orderly`: no window was open.
  void SayBye(bool orderly);
  // `id`'s memory is used no more. The peer may have the answers to its gets before this side knows: waits for them as
  // long as `patience_ns`. An error: something that waits for that memory, or such an answer, is lost. A put that was
  // sent and that nobody tested done resets the connection.
  absl::Status Forget(uint32_t id, int64_t patience_ns);
  void Close();

 private:
  static constexpr size_t kCrowdedBatches = 16;
  // More batches wait only if a peer asks for more gets than NCCL has under way: 32 for each of its contexts. A
  // batch of records alone holds more than 1000.
  static constexpr size_t kOverrunBatches = 64;

  enum class State { kUnused, kOpen, kClosed };
  // An idle connection is asked in one of this many looks whether it has failed: nothing else would show it. As often,
  // all that was sent is asked whether it is done, else the oldest: lanes differ, but each question may cost a call.
  static constexpr uint32_t kLooks = 64;

  // A message after its batch.
  struct Following {
    const char* data;
    uint64_t bytes;
    RmaRegion region;
    RmaRequest* request;
  };
  struct Batch {
    std::unique_ptr<char[]> bytes;
    size_t used = 0;
    std::vector<RmaRequest*> requests;  // finished once it is handed over
    std::vector<Following> following;
    size_t followed = 0;  // of those
    bool handed_over = false;
  };
  struct Sent {
    Request* request;
    std::unique_ptr<char[]> bytes;  // of a batch
    RmaRequest* rma = nullptr;      // of what followed one; null: it answers a get
    uint32_t region = 0;            // of what followed one
  };

  // All that the connection has room for.
  absl::Status Send(bool* moved);
  absl::Status Post(SendArgs args, Request** request, bool* room);
  absl::Status SendBatch(Batch* batch, bool* room);
  absl::Status SendFollowing(Batch* batch, bool* room);
  // Unless `all`, up to the first that is not done.
  absl::Status AskSent(bool all, bool* moved);
  // False: a get still needs `id`'s memory, here or at the peer. A connection that has failed is not waited for.
  bool AwaitAnswers(uint32_t id, int64_t patience_ns);
  // It is taken away when done.
  absl::Status Ask(size_t index, bool* done);
  Batch& Write(const RmaRecord& record, const char* data);
  void AppendBatch();
  // The first is over.
  void PopBatch();
  absl::Status AskIdle();
  // The peer has closed, and nobody waits for what is not there.
  void Drop();

  PluginApi* const net_;
  Context* const context_;
  const int device_;
  std::string handle_;
  State state_ = State::kUnused;
  ConnectOptions options_;
  const RmaRecord hello_;
  bool said_bye_ = false;
  bool peer_closed_ = false;
  uint32_t looks_ = 0;
  bool fresh_ = true;  // nothing was sent since the caller's last test or progress
  Comm* comm_ = nullptr;
  CommRegions regions_;
  std::deque<Batch> batches_;
  std::vector<Batch> spare_batches_;  // empty; so that none is allocated again
  std::deque<Sent> sent_;
  std::vector<std::unique_ptr<char[]>> buffers_;  // for batches to come
};

}  // namespace tcpx
