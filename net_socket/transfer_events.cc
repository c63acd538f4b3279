#include "net_socket/transfer_events.h"

#include <algorithm>

namespace tcpx {
namespace {

// `counted`: up to 1 TiB of bytes, chunks above. Chunks may wrap: only a first one of no bytes needs its bit.
constexpr int kBytesBits = 41;
constexpr uint64_t kBytesMask = (uint64_t{1} << kBytesBits) - 1;
constexpr uint64_t kOneChunk = uint64_t{1} << kBytesBits;
constexpr uint64_t kUnknownBytes = ~uint64_t{0};

}  // namespace

void TransferEvents::Count(int lane, uint64_t bytes, uint64_t message_bytes) {
  message_bytes_.store(message_bytes, std::memory_order_relaxed);
  events_[static_cast<size_t>(std::min(lane, kEventsMax - 1))].counted.fetch_add(kOneChunk + bytes,
                                                                                 std::memory_order_relaxed);
  recorder_->counts_.fetch_add(1, std::memory_order_release);
}

bool TransferEvents::AllCounted() const {
  uint64_t sum = 0;
  for (const Event& event : events_) sum += event.counted.load(std::memory_order_relaxed) & kBytesMask;
  return sum == message_bytes_.load(std::memory_order_relaxed);
}

EventRecorder::EventRecorder(const Settings& settings)
    : sink_(settings.sink),
      updates_(settings.updates),
      receive_(settings.receive),
      transfers_(new TransferEvents[static_cast<size_t>(settings.transfers)]),
      open_(new TransferEvents*[static_cast<size_t>(settings.transfers)]) {
  const int lanes = static_cast<int>(settings.fds.size());
  events_per_transfer_ = std::min(lanes, TransferEvents::kEventsMax);
  std::copy_n(settings.fds.begin(), events_per_transfer_, fds_.begin());
  if (lanes > TransferEvents::kEventsMax) fds_.back() = -1;
  for (int i = 0; i < settings.transfers; ++i) transfers_[static_cast<size_t>(i)].recorder_ = this;
}

TransferEvents* EventRecorder::Begin(size_t slot, void* parent) {
  if (parent == nullptr || dropped_) return nullptr;
  TransferEvents* transfer = &transfers_[slot];
  if (transfer->place_ >= 0) Close(transfer);  // Its request ended without a word: its parent may be gone.
  transfer->parent_ = parent;
  transfer->message_bytes_.store(kUnknownBytes, std::memory_order_relaxed);
  for (TransferEvents::Event& event : transfer->events_) {
    event.counted.store(0, std::memory_order_relaxed);
    event.handle = nullptr;
    event.started = false;
  }
  transfer->place_ = open_count_;
  open_[static_cast<size_t>(open_count_++)] = transfer;
  return transfer;
}

void EventRecorder::Publish() {
  const uint64_t counts = counts_.load(std::memory_order_acquire);
  if (counts == published_) return;
  published_ = counts;
  for (int i = 0; i < open_count_; ++i) {
    TransferEvents* transfer = open_[static_cast<size_t>(i)];
    if (updates_ || transfer->AllCounted()) Tell(transfer);
  }
}

void EventRecorder::Tell(TransferEvents* transfer) {
  for (int i = 0; i < events_per_transfer_; ++i) {
    const size_t index = static_cast<size_t>(i);
    TellOne(&transfer->events_[index], fds_[index], transfer->parent_);
  }
}

void EventRecorder::TellOne(TransferEvents::Event* event, int fd, void* parent) {
  const uint64_t counted = event->counted.load(std::memory_order_relaxed);
  if (counted == 0) return;
  const uint64_t bytes = counted & kBytesMask;
  const bool starts = !event->started;
  if (!starts && (event->handle == nullptr || event->told == bytes)) return;
  event->started = true;
  event->told = bytes;
  sink_(&event->handle, starts ? EventStep::kStart : EventStep::kUpdate, parent, {fd, receive_, bytes});
}

void EventRecorder::Stop(TransferEvents* transfer) {
  if (transfer->place_ < 0) return;
  Tell(transfer);
  for (int i = 0; i < events_per_transfer_; ++i) {
    const size_t index = static_cast<size_t>(i);
    TransferEvents::Event& event = transfer->events_[index];
    if (event.handle == nullptr) continue;
    sink_(&event.handle, EventStep::kStop, transfer->parent_, {fds_[index], receive_, event.told});
  }
  Close(transfer);
}

void EventRecorder::Close(TransferEvents* transfer) {
  TransferEvents* last = open_[static_cast<size_t>(--open_count_)];
  open_[static_cast<size_t>(transfer->place_)] = last;
  last->place_ = transfer->place_;
  transfer->place_ = -1;
}

void EventRecorder::Drop() {
  dropped_ = true;
  while (open_count_ > 0) open_[static_cast<size_t>(--open_count_)]->place_ = -1;
}

}  // namespace tcpx
