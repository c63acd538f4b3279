#include "net_socket/rma/rma_receiver.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "net_socket/gpu/gpu_writer.h"

namespace tcpx {
namespace {

// A peer whose bytes don't come can't fill this process with its signals: reading goes on when some are over.
constexpr size_t kArrivalsMax = 1024;
// Such a batch with a signal is not followed at once by the next: to look for that costs a call of the kernel.
constexpr size_t kShortBatch = 4096;
// Payloads that are asked for at a time and are not there.
constexpr int kAskedMax = 4;

absl::Status Broken(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("one-sided transfer refused: ", what));
}

absl::Status OutOfRange(absl::string_view what, uint32_t region, uint64_t offset, uint64_t bytes,
                        const RmaRegion* known) {
  const std::string size = known == nullptr ? "which is not registered" : absl::StrFormat("which has %u", known->bytes);
  return Broken(absl::StrFormat("%s %u bytes at %u of region %u, %s", what, bytes, offset, region, size));
}

}  // namespace

RmaReceiver::RmaReceiver(PluginApi* net, Comm* comm, Owner* owner)
    : net_(net),
      comm_(comm),
      owner_(owner),
      regions_(net),
      since_ns_(MonotonicNanos()),
      buffer_(new char[kRmaBatchBytes]) {}

absl::Status RmaReceiver::Receive(char* data, size_t bytes, MemoryRegion* region, Request** request) {
  void* const at = data;
  const int tag = 0;
  ReceiveArgs args;
  args.count = 1;
  args.data = &at;
  args.bytes = &bytes;
  args.tags = &tag;
  args.regions = &region;
  args.unawaited = region == nullptr;  // The next batch: it comes, or not.
  return net_->Receive(comm_, args, request);
}

absl::Status RmaReceiver::Progress(bool* moved) {
  if (comm_ == nullptr) return absl::OkStatus();
  in_vain_ = arrivals_.empty() ? std::min(in_vain_ + 1, kIdleLooks) : 0;
  absl::Status status = Settle(moved);
  if (status.ok() && !unread_.empty()) status = ReadAndSettle(moved);
  // A caller that waits for a signal sees it before the next batch is asked for.
  bool again = true;
  for (int more = 0; more < 4 && again && status.ok() && unread_.empty() && !closed_; ++more) {
    if (batch_request_ == nullptr) status = Receive(buffer_.get(), kRmaBatchBytes, nullptr, &batch_request_);
    if (!status.ok() || batch_request_ == nullptr) return status;
    bool done = false;
    int bytes = 0;
    status = net_->Test(batch_request_, &done, &bytes);
    if (!status.ok() || !done) return status;
    batch_request_ = nullptr;
    unread_ = absl::string_view(buffer_.get(), static_cast<size_t>(bytes));
    const uint64_t before = applied_;
    again = unread_.size() >= kShortBatch;
    status = ReadAndSettle(moved);
    again = again || applied_ == before;
  }
  return status;
}

absl::Status RmaReceiver::ReadAndSettle(bool* moved) {
  *moved = true;
  in_vain_ = 0;
  absl::Status status = ReadBatch();
  return status.ok() ? Settle(moved) : status;
}

absl::Status RmaReceiver::ReadBatch() {
  while (!unread_.empty()) {
    if (arrivals_.size() >= kArrivalsMax) return absl::OkStatus();
    const absl::string_view before = unread_;
    RmaRecord record;
    absl::string_view payload;
    if (const char* wrong = ReadRmaRecord(&unread_, &record, &payload)) return Broken(wrong);
    if (closed_ || greeted_ == (record.kind == RmaKind::kHello)) return Broken("a record out of place");
    bool room = true;
    absl::Status status = Take(record, payload, &room);
    if (!status.ok()) return status;
    if (room) continue;
    unread_ = before;
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status RmaReceiver::Take(const RmaRecord& record, absl::string_view payload, bool* room) {
  switch (record.kind) {
    case RmaKind::kHello:
      return TakeHello(record);
    case RmaKind::kPut:
      return TakePut(record, payload, room);
    case RmaKind::kGet:
      return owner_->Asked(rank_, record);
    case RmaKind::kGotten:
      return TakeGotten(record, payload, room);
    case RmaKind::kBye:
      closed_ = true;
      owner_->PeerClosed(rank_, record.bytes != 0);
      return absl::OkStatus();
  }
  return Broken("a record of an unknown kind");
}

// One whose word is not taken has not said who it is.
absl::Status RmaReceiver::TakeHello(const RmaRecord& record) {
  const absl::Status taken = owner_->Greeted(this, record);
  greeted_ = taken.ok();
  if (greeted_) rank_ = static_cast<uint32_t>(record.token);
  return taken;
}

absl::Status RmaReceiver::TakePut(const RmaRecord& record, absl::string_view payload, bool* room) {
  if (record.has_signal) {
    const RmaRegion* const signals = owner_->regions().FindId(record.signal_region);
    if (signals == nullptr || !signals->ContainsWord(record.signal_offset)) {
      return OutOfRange("a signal of", record.signal_region, record.signal_offset, sizeof(uint64_t), signals);
    }
  }
  Request* coming = nullptr;
  if (record.bytes > 0) {
    const RmaRegion* const region = owner_->regions().FindId(record.region);
    if (region == nullptr || !region->Contains(record.offset, record.bytes)) {
      return OutOfRange("a put of", record.region, record.offset, record.bytes, region);
    }
    absl::Status status = Bring(record, *region, region->data + record.offset, payload, &coming, room);
    if (!status.ok() || !*room) return status;
  }
  return Enter(record, coming);
}

absl::Status RmaReceiver::TakeGotten(const RmaRecord& record, absl::string_view payload, bool* room) {
  Wanted* const wanted = owner_->Find(rank_, record);
  if (wanted == nullptr || wanted->begun) return Broken("an answer that nobody has asked for");
  Request* coming = nullptr;
  absl::Status status = Bring(record, wanted->region, wanted->data, payload, &coming, room);
  if (!status.ok() || !*room) return status;
  wanted->begun = true;
  if (coming == nullptr && !wanted->region.on_gpu()) {
    owner_->Answered(record.token);
    return absl::OkStatus();
  }
  status = Enter(record, coming);
  if (coming == nullptr) arrivals_.back().copied = owner_->regions().writer()->last();
  return status;
}

absl::Status RmaReceiver::Bring(const RmaRecord& record, const RmaRegion& region, char* at, absl::string_view payload,
                                Request** coming, bool* room) {
  if (record.follows) {
    auto registered = regions_.For(comm_, region);
    if (!registered.ok()) return registered.status();
    absl::Status status = Receive(at, record.bytes, *registered, coming);
    *room = *coming != nullptr;
    return status;
  }
  if (payload.empty()) return absl::OkStatus();
  if (region.on_gpu()) return Given(owner_->regions().writer()->Put(at, payload, room));
  std::memcpy(at, payload.data(), payload.size());
  return absl::OkStatus();
}

absl::Status RmaReceiver::Enter(const RmaRecord& record, Request* coming) {
  const bool is_there = coming == nullptr && record.kind == RmaKind::kPut;
  if (is_there && !record.has_signal) return absl::OkStatus();
  if (is_there && arrivals_.empty() && owner_->regions().writer() == nullptr) return Finish(record);
  arrivals_.push_back({record, coming});
  // A signal alone may be sent for the put before it.
  if (record.bytes == 0) arrivals_.back().record.strong = true;
  return absl::OkStatus();
}

absl::Status RmaReceiver::Settle(bool* moved) {
  blocked_.clear();
  int unfinished = 0;
  for (size_t i = 0; i < arrivals_.size();) {
    Arrival& arrival = arrivals_[i];
    // Those that come next are seldom there before many older ones.
    absl::Status status = unfinished < kAskedMax ? Ask(&arrival, moved) : absl::OkStatus();
    if (!status.ok()) return status;
    if (arrival.coming != nullptr) ++unfinished;
    const RmaRecord& record = arrival.record;
    const bool waits = arrival.coming != nullptr || (record.has_signal && record.strong && Blocked(record.context));
    if (waits || !Copied(&arrival)) {
      if (record.kind == RmaKind::kPut && !Blocked(record.context)) blocked_.push_back(record.context);
      ++i;
      continue;
    }
    status = Finish(record);
    if (!status.ok()) return status;
    arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return absl::OkStatus();
}

bool RmaReceiver::Blocked(uint32_t context) const {
  return std::find(blocked_.begin(), blocked_.end(), context) != blocked_.end();
}

absl::Status RmaReceiver::Ask(Arrival* arrival, bool* moved) {
  if (arrival->coming == nullptr) return absl::OkStatus();
  bool done = false;
  int bytes = 0;
  absl::Status status = net_->Test(arrival->coming, &done, &bytes);
  if (!status.ok() || !done) return status;
  if (static_cast<uint64_t>(bytes) != arrival->record.bytes) {
    return Broken("a payload of another size than was announced");
  }
  arrival->coming = nullptr;
  *moved = true;
  return absl::OkStatus();
}

bool RmaReceiver::Copied(Arrival* arrival) const {
  GpuWriter* const writer = owner_->regions().writer();
  if (writer == nullptr) return true;
  if (arrival->copied == 0) {
    const RmaRecord& record = arrival->record;
    const RmaRegion* const signals = record.has_signal ? owner_->regions().FindId(record.signal_region) : nullptr;
    if (signals == nullptr) return true;
    if (signals->on_gpu()) return writer->MayAdd();
    arrival->copied = writer->last();
  }
  return writer->Reached(arrival->copied);
}

absl::Status RmaReceiver::Finish(const RmaRecord& record) {
  if (record.kind == RmaKind::kGotten) owner_->Answered(record.token);
  if (!record.has_signal) return absl::OkStatus();
  // It may have been deregistered since.
  const RmaRegion* const signals = owner_->regions().FindId(record.signal_region);
  if (signals == nullptr) {
    return OutOfRange("a signal of", record.signal_region, record.signal_offset, sizeof(uint64_t), signals);
  }
  ++applied_;
  char* const word = signals->data + record.signal_offset;
  if (signals->on_gpu()) return Given(owner_->regions().writer()->Add(word, record.signal_add, signals->ours()));
  AddToHostWord(word, record.signal_add);
  return absl::OkStatus();
}

absl::Status RmaReceiver::Given(absl::Status status) {
  given_ = owner_->regions().writer()->last();
  return status;
}

bool RmaReceiver::waits() const {
  const GpuWriter* const writer = owner_->regions().writer();
  return !arrivals_.empty() || (writer != nullptr && !writer->Reached(given_));
}

void RmaReceiver::Close() {
  if (comm_ != nullptr) net_->CloseComm(comm_);
  comm_ = nullptr;
  batch_request_ = nullptr;
  arrivals_.clear();
}

bool RmaReceiver::IsLost(const absl::Status& status, int64_t timeout_ns) const {
  return !greeted_ && (!status.ok() || MonotonicNanos() - since_ns_ > timeout_ns);
}

}  // namespace tcpx
