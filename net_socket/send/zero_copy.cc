#include "net_socket/send/zero_copy.h"

#include <algorithm>

namespace tcpx {

PinnedChunk* PinnedChunks::Take() {
  if (free_.empty()) {
    if (all_.size() == kMax) return nullptr;
    all_.push_back(std::make_unique<PinnedChunk>());
    free_.push_back(all_.back().get());
  }
  PinnedChunk* chunk = free_.back();
  free_.pop_back();
  chunk->taken = false;
  chunk->released = false;
  return chunk;
}

void PinnedChunks::Settle(PinnedChunk* chunk) {
  if (!chunk->taken || !chunk->released) return;
  const Chunk sent = chunk->chunk;
  chunk->sealed.GiveBack();
  free_.push_back(chunk);
  if (reports_sent_) Striper::Sent(sent);  // The request may be gone after this.
}

bool PinnedChunks::InFlight() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& chunk) { return chunk->op.in_flight; });
}

}  // namespace tcpx
