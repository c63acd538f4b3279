#include "net_socket/send/registered_buffers.h"

#include <utility>

namespace tcpx {

int RegisteredBuffers::Find(Engine* engine, const Region& region) {
  for (const Entry& entry : entries_) {
    if (entry.id == region.id) return entry.buffer;
  }
  used_.store(true, std::memory_order_relaxed);
  const int buffer = region.bytes > kBytesMax ? kNoBuffer : engine->RegisterBuffer(region.data, region.bytes);
  entries_.push_back({region.id, buffer});
  return buffer;
}

bool RegisteredBuffers::Forget(uint64_t id) {
  if (!used_.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  forgotten_.push_back(id);
  forgot_.store(true, std::memory_order_release);
  return true;
}

void RegisteredBuffers::Settle(Engine* engine) {
  if (!forgot_.load(std::memory_order_relaxed) || !forgot_.exchange(false, std::memory_order_acquire)) return;
  std::vector<uint64_t> ids;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ids.swap(forgotten_);
  }
  for (uint64_t id : ids) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].id == id) Release(engine, i);
    }
  }
}

void RegisteredBuffers::ReleaseAll(Engine* engine) {
  while (!entries_.empty()) Release(engine, entries_.size() - 1);
}

void RegisteredBuffers::Release(Engine* engine, size_t index) {
  if (entries_[index].buffer != kNoBuffer) engine->ReleaseBuffer(entries_[index].buffer);
  entries_[index] = entries_.back();
  entries_.pop_back();
}

}  // namespace tcpx
