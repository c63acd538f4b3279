// rma_receiver.h: what comes from one peer of a group, and in which order it is seen.
//
// Purpose: reads batches, puts payloads where their records say, and applies signals: each once, and only when all that
//          it covers is in place. Keeps one receive posted for the batch to come, and one for each payload that
//          follows.
// Threads: under the group's mutex.
// Units:   bytes.
// Errors:  as PluginApi's Receive and Test; kUnavailable in words where the peer breaks the rules.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nccl/plugin_api.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/request.h"

namespace tcpx {

class RmaReceiver {
 public:
  using Wanted = RmaWanted;
  class Owner {
   public:
    virtual const RmaRegionTable& regions() const = 0;
    // The peer says which rank it is. An error: it can't be that rank.
    virtual absl::Status Greeted(RmaReceiver* by, const RmaRecord& hello) = 0;
    // `rank` asks for memory of this rank. An error: it may not have it.
    virtual absl::Status Asked(uint32_t rank, const RmaRecord& get) = 0;
    // Null: this rank has not asked `rank` for this many bytes with that token. Valid until the next call.
    virtual Wanted* Find(uint32_t rank, const RmaRecord& gotten) = 0;
    // The bytes of the get with this token are in place.
    virtual void Answered(uint64_t token) = 0;
    // `orderly`: it had no windows.
    virtual void PeerClosed(uint32_t rank, bool orderly) = 0;

   protected:
    ~Owner() = default;
  };

  RmaReceiver(PluginApi* net, Comm* comm, Owner* owner);

  absl::Status Progress(bool* moved);
  bool greeted() const { return greeted_; }
  // The peer's group is open, as far as is known here.
  bool owes_bye() const { return greeted_ && !closed_; }
  // For bytes, for a copy, or for what is older.
  bool waits() const;
  // The latest looks found nothing, and nothing is on its way.
  bool idle() const { return in_vain_ == kIdleLooks; }
  uint32_t rank() const { return rank_; }
  Comm* comm() const { return comm_; }
  // After Progress has returned `status`: the peer has not said who it is, and won't.
  bool IsLost(const absl::Status& status, int64_t timeout_ns) const;
  void Forget(uint32_t id) { regions_.Forget(comm_, id); }
  void Close();

 private:
  static constexpr int kIdleLooks = 64;
  // An operation that is not complete: its bytes are coming, its signal waits for others, or both.
  struct Arrival {
    RmaRecord record;           // `strong` also for a signal alone
    Request* coming = nullptr;  // null: its bytes have come
    uint64_t copied = 0;        // of the GPU's writer: what it waits for, once that is known
  };

  // `region`: null for the next batch, which nobody may send.
  absl::Status Receive(char* data, size_t bytes, MemoryRegion* region, Request** request);
  // Reads on in the batch; stops where there is no room for what follows.
  absl::Status ReadBatch();
  absl::Status ReadAndSettle(bool* moved);
  absl::Status Take(const RmaRecord& record, absl::string_view payload, bool* room);
  absl::Status TakeHello(const RmaRecord& record);
  absl::Status TakePut(const RmaRecord& record, absl::string_view payload, bool* room);
  absl::Status TakeGotten(const RmaRecord& record, absl::string_view payload, bool* room);
  // A payload, from the batch or by a receive of its own: *coming, where it is not there yet.
  absl::Status Bring(const RmaRecord& record, const RmaRegion& region, char* at, absl::string_view payload,
                     Request** coming, bool* room);
  // Waits in arrivals_, unless it is complete and nothing older is under way.
  absl::Status Enter(const RmaRecord& record, Request* coming);
  // Tests what is coming, and applies the signals that may be applied.
  absl::Status Settle(bool* moved);
  absl::Status Ask(Arrival* arrival, bool* moved);
  // What it says about GPU memory is true: a signal there is written after what it covers, all else waits here.
  bool Copied(Arrival* arrival) const;
  absl::Status Finish(const RmaRecord& record);
  // To the GPU's writer.
  absl::Status Given(absl::Status status);
  // An older operation of that context is not complete.
  bool Blocked(uint32_t context) const;

  PluginApi* const net_;
  Comm* comm_;
  Owner* const owner_;
  CommRegions regions_;
  const int64_t since_ns_;
  bool greeted_ = false;
  bool closed_ = false;  // it has said bye
  uint32_t rank_ = 0;
  std::unique_ptr<char[]> buffer_;
  Request* batch_request_ = nullptr;  // null: none is posted
  absl::string_view unread_;          // of the batch that came
  std::deque<Arrival> arrivals_;      // oldest first
  std::vector<uint32_t> blocked_;     // contexts, of Settle
  uint64_t applied_ = 0;              // signals
  int in_vain_ = 0;                   // the latest looks while nothing was on its way
  uint64_t given_ = 0;                // to the GPU's writer: the number of the latest
};

}  // namespace tcpx
