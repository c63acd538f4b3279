// request.h: the operations of a group that have not been reported done.
//
// Purpose: slots that are used again and never move, so that a put allocates nothing once as many were under way.
// Threads: under the group's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "nccl/rma_api.h"

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

}  // namespace tcpx
