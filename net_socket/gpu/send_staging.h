// send_staging.h: what a send comm has still to fetch out of GPU memory.
//
// Purpose: a message in GPU memory reaches the lanes in parts: each is copied into a pinned slot, and posted as soon as
//          its copy's event is done, while later parts are being copied and earlier ones sent. Messages in host memory
//          after it wait their turn, because sequence numbers must not decrease on a lane.
//
//   staging.Push(request, on_gpu);
//   status = staging.Poll();                                  // in every isend and test
//   while (SendRequest* next = staging.TakeReady()) { ... }   // post it to the lanes
// Threads: the calling thread; lanes count down `left` of the parts.
// Lifetime: borrows a message from Push until its `left` is 0, which it counts down itself where it is staged.
// Errors:  Poll: as GpuDriver::Check.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/message/request.h"

namespace tcpx {

class SendStaging {
 public:
  // Room for `messages` at once.
  SendStaging(std::unique_ptr<GpuAllowance> slots, int messages);

  GpuPool& pool() const { return slots_->pool(); }
  // True exactly when nothing that was pushed has still to be posted.
  bool idle() const { return waiting_.empty() && steps_.empty(); }
  void Push(SendRequest* message, bool on_gpu);
  // Starts what copies there are slots for, looks which are done, and takes back slots that were sent.
  absl::Status Poll();
  // What to post next, a part or a whole message in host memory; null: nothing yet.
  SendRequest* TakeReady();
  // The comm has failed and no thread moves its lanes: returns once no copy reads GPU memory or writes a slot. With a
  // GPU that is stuck the slots are lost instead.
  void Abandon();

 private:
  struct Message {
    SendRequest* request = nullptr;
    bool on_gpu = false;
  };
  // In the order of posting: a slot being copied into, or a whole message.
  struct Step {
    GpuSlot* slot = nullptr;
    SendRequest* whole = nullptr;
  };
  // A queue of fixed size. The caller knows that there is room.
  template <typename T>
  class Queue {
   public:
    explicit Queue(size_t capacity) : capacity_(capacity), items_(new T[capacity]) {}
    bool empty() const { return head_ == tail_; }
    size_t size() const { return tail_ - head_; }
    T& at(size_t i) { return items_[(head_ + i) % capacity_]; }
    void Push(T item) { items_[tail_++ % capacity_] = item; }
    T Pop() { return items_[head_++ % capacity_]; }

   private:
    const size_t capacity_;
    std::unique_ptr<T[]> items_;
    size_t head_ = 0;
    size_t tail_ = 0;
  };

  void Reap();
  absl::Status StartCopies();
  absl::Status StartCopy(GpuSlot* slot, SendRequest* message);
  absl::Status LookAtCopies();

  const std::unique_ptr<GpuAllowance> slots_;
  Queue<Message> waiting_;
  size_t copied_ = 0;  // of the first that waits: how many bytes have a copy that was started
  Queue<Step> steps_;
  size_t ready_ = 0;  // how many of the first steps may be posted
  GpuSlot* posted_[GpuAllowance::kSlots] = {};
  int posted_count_ = 0;
};

}  // namespace tcpx
