#include "net_socket/rma/pending_gets.h"

#include <algorithm>

namespace tcpx {

uint64_t PendingGets::Add(const RmaReceiver::Wanted& wanted, uint64_t bytes, RmaRequest* request) {
  gets_[next_token_] = {wanted, bytes, request->rank, request};
  return next_token_++;
}

RmaReceiver::Wanted* PendingGets::Find(uint32_t rank, const RmaRecord& gotten) {
  const auto get = gets_.find(gotten.token);
  if (get == gets_.end() || get->second.rank != rank || get->second.bytes != gotten.bytes) return nullptr;
  return &get->second.wanted;
}

void PendingGets::Answered(uint64_t token) {
  const auto get = gets_.find(token);
  if (get == gets_.end()) return;
  RmaRequests::Finish(get->second.request);
  gets_.erase(get);
}

bool PendingGets::Uses(uint32_t region) const {
  return std::any_of(gets_.begin(), gets_.end(),
                     [region](const auto& get) { return get.second.wanted.region.id == region; });
}

void PendingGets::Disown() {
  for (auto& [token, get] : gets_) {
    if (get.request != nullptr && get.request->contexts == nullptr) get.request = nullptr;
  }
}

}  // namespace tcpx
