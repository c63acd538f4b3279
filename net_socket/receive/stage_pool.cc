#include "net_socket/receive/stage_pool.h"

#include <utility>

namespace tcpx {

Stage StagePool::Take() {
  if (!busy_.test_and_set(std::memory_order_acquire)) {
    Stage stage;
    if (!kept_.empty()) {
      stage = std::move(kept_.back());
      kept_.pop_back();
    }
    busy_.clear(std::memory_order_release);
    if (stage != nullptr) return stage;
  }
  return Stage(static_cast<char*>(::operator new[](kStageBytes, std::align_val_t{kStageAlignment})));
}

void StagePool::Give(Stage stage) {
  if (busy_.test_and_set(std::memory_order_acquire)) return;  // Freed: another thread is at the pool.
  if (kept_.capacity() == 0) kept_.reserve(kKeptMax);
  if (kept_.size() < kKeptMax) kept_.push_back(std::move(stage));
  busy_.clear(std::memory_order_release);
}

}  // namespace tcpx
