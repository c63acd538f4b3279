// request.h: the operations of a group that have not been reported done, and its gets whose answers have not come.
//
// Purpose: slots that are used again and never move, so that a put allocates nothing once as many were under way. An
//          answer names a get by its token; only the rank that was asked may answer, once, and with as many bytes.
// Threads: under the group's mutex.
// Units:   bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"

namespace tcpx {

class RmaRequest {
 public:
  RmaContexts* contexts = nullptr;  // whose it is; null: the slot is free
  bool done = false;
  bool get = false;
  uint32_t rank = 0;  // the peer
};

// What createContext made: a few domains of order.
class RmaContexts {
 public:
  RmaGroup* group = nullptr;
  uint32_t first = 0;  // its number within the group
  int count = 0;
  int unfinished = 0;  // operations that may still touch memory
};

class RmaRequests {
 public:
  RmaRequest* Take(RmaContexts* contexts, uint32_t rank, bool get) {
    if (free_.empty()) {
      slots_.emplace_back();
      free_.push_back(&slots_.back());
    }
    RmaRequest* const slot = free_.back();
    free_.pop_back();
    slot->contexts = contexts;
    slot->done = false;
    slot->get = get;
    slot->rank = rank;
    ++contexts->unfinished;
    return slot;
  }
  // It touches no memory any more. Null: nobody asks.
  static void Finish(RmaRequest* request) {
    if (request == nullptr || request->done) return;
    request->done = true;
    if (request->contexts != nullptr) --request->contexts->unfinished;
  }
  // It was reported.
  void Give(RmaRequest* request) {
    request->contexts = nullptr;
    free_.push_back(request);
  }
  // Not reported done.
  size_t taken() const { return slots_.size() - free_.size(); }
  // Its contexts end: what is unfinished is nobody's.
  void Disown(const RmaContexts* contexts) {
    for (RmaRequest& request : slots_) {
      if (request.contexts != contexts) continue;
      request.done = true;
      Give(&request);
    }
  }

 private:
  std::deque<RmaRequest> slots_;
  std::vector<RmaRequest*> free_;
};

// Where a get's bytes go that this rank has asked for.
struct RmaWanted {
  char* data = nullptr;
  RmaRegion region;
  bool begun = false;  // the answer has
};

class PendingGets {
 public:
  // The token.
  uint64_t Add(const RmaWanted& wanted, uint64_t bytes, RmaRequest* request) {
    gets_[next_token_] = {wanted, bytes, request->rank, request};
    return next_token_++;
  }
  // Null: nobody has asked `rank` for that.
  RmaWanted* Find(uint32_t rank, const RmaRecord& gotten) {
    const auto get = gets_.find(gotten.token);
    if (get == gets_.end() || get->second.rank != rank || get->second.bytes != gotten.bytes) return nullptr;
    return &get->second.wanted;
  }
  void Answered(uint64_t token) {
    const auto get = gets_.find(token);
    if (get == gets_.end()) return;
    RmaRequests::Finish(get->second.request);
    gets_.erase(get);
  }
  // True: an answer would be written there.
  bool Uses(uint32_t region) const {
    return absl::c_any_of(gets_, [region](const auto& get) { return get.second.wanted.region.id == region; });
  }
  // Requests whose slots are free belong to nobody.
  void Disown() {
    for (auto& [token, get] : gets_) {
      if (get.request != nullptr && get.request->contexts == nullptr) get.request = nullptr;
    }
  }

 private:
  struct Get {
    RmaWanted wanted;
    uint64_t bytes = 0;
    uint32_t rank = 0;
    RmaRequest* request = nullptr;
  };

  absl::flat_hash_map<uint64_t, Get> gets_;  // by token
  uint64_t next_token_ = 0;
};

}  // namespace tcpx
