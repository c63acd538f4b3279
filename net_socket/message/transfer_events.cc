#include "net_socket/message/transfer_events.h"

#include <algorithm>

namespace tcpx {
namespace {

// `counted`: up to 1 TiB of bytes, chunks above. Chunks may wrap: only a first one of no bytes needs its bit.
constexpr int kBytesBits = 41;
constexpr uint64_t kBytesMask = (uint64_t{1} << kBytesBits) - 1;
constexpr uint64_t kOneChunk = uint64_t{1} << kBytesBits;
}  // namespace

inline void TransferEvents::Take(int lane, uint64_t bytes, uint64_t message_bytes) {
  counted_[static_cast<size_t>(std::min(lane, kEventsMax - 1))].fetch_add(kOneChunk + bytes, std::memory_order_relaxed);
  message_bytes_.store(message_bytes, std::memory_order_relaxed);
}

void TransferEvents::Count(int lane, uint64_t bytes, uint64_t message_bytes) {
  Take(lane, bytes, message_bytes);
  recorder_->counts_.fetch_add(1, std::memory_order_release);
}

bool TransferEvents::AllCounted() const {
  uint64_t sum = 0;
  for (const auto& counted : counted_) sum += counted.load(std::memory_order_relaxed) & kBytesMask;
  return sum == message_bytes_.load(std::memory_order_relaxed);
}

void EventRecorder::Record(const Settings& settings) {
  settings_ = settings;
  transfers_.reset(new TransferEvents[static_cast<size_t>(settings.transfers)]);
  open_.reserve(static_cast<size_t>(settings.transfers));
  events_per_transfer_ = std::min(settings.fds.size(), size_t{TransferEvents::kEventsMax});
  fds_.fill(-1);
  for (size_t lane = 0; lane < settings.fds.size(); ++lane) NoteLane(static_cast<int>(lane), settings.fds[lane]);
  for (int i = 0; i < settings.transfers; ++i) transfers_[static_cast<size_t>(i)].recorder_ = this;
}

// The last event is that of several lanes, where there are too many.
void EventRecorder::NoteLane(int lane, int fd) {
  if (settings_.sink == nullptr) return;
  const bool shared = settings_.fds.size() > TransferEvents::kEventsMax && lane >= TransferEvents::kEventsMax - 1;
  if (!shared) fds_[static_cast<size_t>(lane)] = fd;
}

TransferEvents* EventRecorder::Begin(size_t slot, void* parent) {
  if (parent == nullptr || settings_.sink == nullptr || dropped_) return nullptr;
  TransferEvents* transfer = &transfers_[slot];
  if (transfer->place_ >= 0) Close(transfer);  // Its request ended without a word: its parent may be gone.
  transfer->parent_ = parent;
  transfer->message_bytes_.store(kUnknownBytes, std::memory_order_relaxed);
  for (auto& counted : transfer->counted_) counted.store(0, std::memory_order_relaxed);
  transfer->started_ = 0;
  transfer->place_ = static_cast<int>(open_.size());
  open_.push_back(transfer);
  return transfer;
}

void EventRecorder::CountWhole(TransferEvents* transfer, int lane, uint64_t message_bytes) {
  if (transfer == nullptr) return;
  transfer->Take(lane, message_bytes, message_bytes);
  Report(transfer);
}

void EventRecorder::Publish() {
  const uint64_t counts = counts_.load(std::memory_order_acquire);
  if (counts == published_) return;
  published_ = counts;
  for (TransferEvents* transfer : open_) {
    if (transfer->AnyCounted() && (settings_.updates || transfer->AllCounted())) Report(transfer);
  }
}

void EventRecorder::Report(TransferEvents* transfer) {
  for (size_t event = 0; event < events_per_transfer_; ++event) {
    const uint64_t counted = transfer->counted_[event].load(std::memory_order_relaxed);
    if (counted == 0) continue;
    const uint64_t bytes = counted & kBytesMask;
    EventStep step = EventStep::kUpdate;
    if (!transfer->started(event)) {
      transfer->started_ |= 1u << event;
      transfer->handles_[event] = nullptr;
      step = EventStep::kStart;
    } else if (transfer->handles_[event] == nullptr || transfer->reported_[event] == bytes) {
      continue;
    }
    transfer->reported_[event] = bytes;
    Tell(transfer, event, step);
  }
}

void EventRecorder::Tell(TransferEvents* transfer, size_t event, EventStep step) {
  settings_.sink(&transfer->handles_[event], step, transfer->parent_,
                 {fds_[event], settings_.receive, transfer->reported_[event]});
}

void EventRecorder::Stop(TransferEvents* transfer) {
  if (transfer == nullptr || transfer->place_ < 0) return;
  Report(transfer);
  for (size_t event = 0; event < events_per_transfer_; ++event) {
    if (transfer->started(event) && transfer->handles_[event] != nullptr) Tell(transfer, event, EventStep::kStop);
  }
  Close(transfer);
}

void EventRecorder::Close(TransferEvents* transfer) {
  open_[static_cast<size_t>(transfer->place_)] = open_.back();
  open_.back()->place_ = transfer->place_;
  open_.pop_back();
  transfer->place_ = -1;
}

void EventRecorder::Drop() {
  dropped_ = true;
  for (TransferEvents* transfer : open_) transfer->place_ = -1;
  open_.clear();
}

}  // namespace tcpx
