// request.h: the fixed slots that NCCL's request pointers name.
//
// Purpose: one slot per isend or irecv that has not been reported done; the pools are sized at connect and never grow.
// Threads: the calling thread of the comm, but for SendRequest::left, which lanes of the progress pool count down.
// Lifetime: a slot belongs to its comm. After `done` was reported it may be used again at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/dcheck.h"
#include "net_socket/message/flight.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class Comm;
class MemoryRegion;

// Requests that a comm holds at once: NCCL_NET_MAX_REQUESTS, NCCL 2.19 and later; per buffer of a group on the send
// side.
inline constexpr int kRequestsMax = 32;

class Request {
 public:
  Comm* comm = nullptr;
  bool in_use = false;
};

class SendRequest final : public Request {
 public:
  // Units (see Units) that the kernel has not taken yet: 0 exactly when the buffer may be overwritten.
  std::atomic<uint64_t> left{0};
  const char* data = nullptr;
  Relaxed<size_t> bytes;
  // What the lanes are given may be a part of a message (staging, send_staging.h): else the whole, at 0.
  uint64_t message_bytes = 0;
  uint64_t message_offset = 0;
  Relaxed<uint64_t> sequence;
  int32_t tag = 0;
  MemoryRegion* region = nullptr;
  TransferEvents* events = nullptr;  // null: no profiler listens
  // Where times are kept (comm/end_numbers.h): of isend, and of the latest chunk that was sent; else 0.
  int64_t begun_ns = 0;
  Relaxed<int64_t> last_ns;
  // On lane 0: what is queued behind it, and the chunk being sent.
  SendRequest* next = nullptr;
  size_t chunk_offset = 0;
  size_t chunk_length = 0;
  uint16_t padding = 0;
  char header[kHeaderBytes];

  bool done() const { return left.load(std::memory_order_acquire) == 0; }
};

// The header of a chunk: `length` bytes of `request`, from `offset` on, and `padding` meaningless bytes after them.
inline void EncodeChunkHeader(const SendRequest& request, size_t offset, size_t length, uint16_t padding, char* out) {
  EncodeHeader({FrameKind::kChunk, padding, static_cast<uint32_t>(length), request.sequence,
                request.message_offset + offset, request.message_bytes, request.tag},
               out);
}

// One receive, or a group of them.
class ReceiveRequest final : public Request {
 public:
  int count = 0;  // members
  PostedReceive* receives[kReceivesMax] = {};
  MemoryRegion* regions[kReceivesMax] = {};
  bool bulk = false;      // a member has room for more than an express message
  bool optional = false;  // NCCL_NET_OPTIONAL_RECV_COMPLETION was asked for, and is honoured
  // True exactly while the slot waits for data that NCCL no longer asks about: reported done, not landed.
  bool early = false;

  // The first member that has not landed; null exactly when all have.
  const PostedReceive* Missing() const {
    for (int i = 0; i < count; ++i) {
      if (!receives[i]->done.load(std::memory_order_acquire)) return receives[i];
    }
    return nullptr;
  }
  bool landed() const { return Missing() == nullptr; }
  uint64_t last_sequence() const { return receives[count - 1]->sequence; }
};

// A stack of free slots.
template <typename T>
class RequestPool {
 public:
  RequestPool(Comm* comm, int count) : count_(count), slots_(new T[count]), free_(new T*[count]) {
    for (int i = 0; i < count; ++i) {
      slots_[i].comm = comm;
      free_[i] = &slots_[count - 1 - i];
    }
    free_count_ = count;
  }

  // Null when all are in use.
  T* Take() {
    if (free_count_ == 0) return nullptr;
    T* slot = free_[--free_count_];
    slot->in_use = true;
    return slot;
  }
  void Give(T* slot) {
    TCPX_DCHECK(slot->in_use && free_count_ < count_);
    slot->in_use = false;
    free_[free_count_++] = slot;
  }
  int in_use() const { return count_ - free_count_; }
  int count() const { return count_; }
  size_t index(const T* slot) const { return static_cast<size_t>(slot - slots_.get()); }
  const T* begin() const { return slots_.get(); }
  const T* end() const { return begin() + count_; }

 private:
  const int count_;
  std::unique_ptr<T[]> slots_;
  std::unique_ptr<T*[]> free_;
  int free_count_ = 0;
};

}  // namespace tcpx
