// rma_sender.h: the way to one peer of a group: dials at first use, and sends batches of records and what follows them.
//
// Purpose: the first operation goes at once; those that come before the caller's next test or progress share a message
//          with each other. Takes all that is added: what the connection has no room for waits here.
//
// Threads: under the group's mutex.
// States:  unused -> dialling -> up -> closed.
// Units:   bytes.
// Errors:  as PluginApi's Connect, Send and Test.
#ifndef TCPX_NET_SOCKET_RMA_RMA_SENDER_H_
#define TCPX_NET_SOCKET_RMA_RMA_SENDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nccl/plugin_api.h"
#include "net_socket/rma/comm_regions.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/request.h"

namespace tcpx {

class RmaSender {
 public:
  // `handle`: the peer's; it takes a copy. `hello`: the first record.
  RmaSender(PluginApi* net, Context* context, int device, const void* handle, const RmaRecord& hello);

  // Sends `record` and its payload at `data`, in `region`, where it has one. `request`, which may be null, is finished
  // once the payload may be overwritten.
  absl::Status Add(const RmaRecord& record, const char* data, const RmaRegion* region, RmaRequest* request);
  // Moves everything: dials, sends what waits, asks what was sent. True in *moved where something was.
  absl::Status Progress(bool* moved);
  // What was added goes now unless the connection is busy.
  absl::Status Flush();

  bool used() const { return state_ != State::kUnused; }
  bool up() const { return comm_ != nullptr; }
  // Nothing waits, and the kernel has all.
  bool idle() const { return batches_.empty() && sent_.empty(); }
  // So much waits that payloads should lie where they are until their turn.
  bool crowded() const { return batches_.size() > kCrowdedBatches; }
  // More than this group may have under way.
  bool overrun() const { return batches_.size() > kOverrunBatches; }
  Comm* comm() const { return comm_; }
  // Starts to dial.
  void Open() { state_ = state_ == State::kUnused ? State::kDialling : state_; }
  // The last record, unless the peer has closed.
  void SayBye();
  // `id`'s memory is used no more; what waits for it is lost.
  void Forget(uint32_t id);
  void Close();

 private:
  static constexpr size_t kCrowdedBatches = 16;
  // Of records alone, each for more than 1000 operations: NCCL has 32 for each of its contexts.
  static constexpr size_t kOverrunBatches = 1024;

  enum class State { kUnused, kDialling, kUp, kClosed };
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
    bool farewell = false;
    std::vector<RmaRequest*> requests;  // finished once it is handed over
    std::deque<Following> following;
    bool handed_over = false;
  };
  struct Sent {
    Request* request;
    std::unique_ptr<char[]> bytes;  // of a batch
    RmaRequest* rma = nullptr;      // of what followed one
  };

  absl::Status Dial(bool* moved);
  // All that the connection has room for.
  absl::Status Send(bool* moved);
  absl::Status SendBatch(Batch* batch, bool* room);
  absl::Status SendFollowing(Batch* batch, bool* room);
  absl::Status AskSent(bool* moved);
  Batch* OpenBatch(size_t space);
  std::unique_ptr<char[]> TakeBuffer();

  PluginApi* const net_;
  Context* const context_;
  const int device_;
  std::string handle_;
  State state_ = State::kUnused;
  bool fresh_ = true;  // nothing was sent since the caller's last test or progress
  Comm* comm_ = nullptr;
  CommRegions regions_;
  std::deque<Batch> batches_;
  std::deque<Sent> sent_;
  std::vector<std::unique_ptr<char[]>> buffers_;  // for batches to come
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RMA_RMA_SENDER_H_
