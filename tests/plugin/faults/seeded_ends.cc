#include "tests/plugin/faults/seeded_ends.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

// What a sender finds in a buffer that is its own again; sent, it would be found at the other end.
constexpr int kScribble = 0x5A;
constexpr size_t kLastBytesMax = 600;  // of the messages that fill the slots

}  // namespace

size_t SeededMessages::Bytes(int message) const {
  Rng rng(seed_ + static_cast<uint64_t>(message) * 8);
  if (message >= count_) return rng.Between(0, kLastBytesMax);
  switch (rng.Between(0, 9)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return rng.Between(1, 300);
    case 3:
    case 4:
    case 5:
      return rng.Between(1, 20'000);
    case 6:
    case 7:
      return rng.Between(20'000, 80'000);
    default:
      return rng.Between(60'000, kSeededBytesMax);
  }
}

size_t SeededMessages::Capacity(int message) const {
  Rng rng(seed_ + static_cast<uint64_t>(message) * 8 + 1);
  return Bytes(message) + (rng.OneIn(2) ? 0 : rng.Between(1, 2000));
}

const Pattern& SeededMessages::pattern() const {
  static const Pattern* const pattern = new Pattern(1, kSeededBytesMax);
  return *pattern;
}

SeededEnd::SeededEnd(PluginApi* plugin, Comm* comm, const SeededMessages* messages, uint64_t seed)
    : plugin_(plugin), comm_(comm), messages_(messages), rng_(seed), limit_(messages->count()) {
  window_ = static_cast<int>(rng_.Between(1, kRequestSlots));
}

void SeededEnd::Wrong(const std::string& text) {
  if (wrong_.empty()) wrong_ = text;
}

MemoryRegion* SeededEnd::Register(GuardedBuffer* buffer) {
  if (rng_.OneIn(3)) return nullptr;
  auto region =
      plugin_->RegisterMemory(comm_, buffer->data(), std::max<size_t>(buffer->bytes_max(), 1), MemoryType::kHost);
  if (!region.ok()) Wrong(absl::StrCat("regMr: ", region.status().ToString()));
  return region.ok() ? *region : nullptr;
}

bool SeededEnd::PostOne() {
  if (!status_.ok() || next_ >= limit_ || static_cast<int>(in_flight_.size()) >= window_) return false;
  Posted posted;
  posted.first = next_;
  status_ = Post(&posted);
  if (!status_.ok() && posted.request != nullptr) Wrong("a refused call gave a request");
  if (!status_.ok() || posted.request == nullptr) return !status_.ok();
  in_flight_.push_back(posted);
  next_ += posted.count;
  return true;
}

bool SeededEnd::TestOldest() {
  if (!status_.ok() || in_flight_.empty()) return false;
  const Posted oldest = in_flight_.front();
  bool done = false;
  int sizes[kReceivesMax] = {};
  status_ = plugin_->Test(oldest.request, &done, sizes);
  if (status_.ok() && !done) return false;
  in_flight_.pop_front();
  if (!status_.ok() && done) Wrong("a request is done and has failed");
  if (status_.ok()) Done(oldest, sizes);
  return true;
}

void SeededEnd::EndAll() {
  for (; !in_flight_.empty(); in_flight_.pop_front()) {
    bool done = false;
    int sizes[kReceivesMax] = {};
    const absl::Status status = plugin_->Test(in_flight_.front().request, &done, sizes);
    if (status.ok() && !done) Wrong("a request is left over after an error");
    if (!status.ok() && status != status_) Wrong(absl::StrCat("another error than before: ", status.ToString()));
    if (status.ok() && done) Done(in_flight_.front(), sizes);
  }
  Posted more;
  more.first = next_;
  if (Post(&more).ok()) Wrong("a failed comm takes requests");
}

// A call gives no request while another thread looks at the comm, as healing does; a slot that is lost stays lost.
void SeededEnd::FillSlots() {
  window_ = kRequestSlots;
  limit_ += kRequestSlots;
  const Deadline deadline;
  for (int i = 0; i < kRequestSlots && status_.ok(); ++i) {
    bool posted = PostOne();
    while (!posted && deadline.Yield()) posted = PostOne();
    if (!posted) return Wrong(absl::StrCat("only ", i, " slots are left of ", kRequestSlots));
  }
}

void SeededEnd::Deregister() {
  armed_.assign(buffers_.size(), false);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (regions_[i] == nullptr) continue;
    plugin_->DeregisterMemory(comm_, regions_[i]);
    buffers_[i]->Arm(buffers_[i]->bytes_max());
    armed_[i] = true;
  }
}

void SeededEnd::ArmAll() {
  CheckUntouched();
  armed_.assign(buffers_.size(), true);
  for (auto& buffer : buffers_) buffer->Arm(buffer->bytes_max());
}

void SeededEnd::CheckUntouched() {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const std::string touched = armed_[i] ? buffers_[i]->Check(0, buffers_[i]->bytes_max()) : "";
    if (!touched.empty()) Wrong(absl::StrCat("message ", i, " was given back, and then: ", touched));
  }
}

absl::Status SeededSender::Post(Posted* posted) {
  const int message = posted->first;
  const size_t bytes = messages_->Bytes(message);
  if (static_cast<int>(buffers_.size()) == message) {
    buffers_.push_back(std::make_unique<GuardedBuffer>(bytes));
    std::memcpy(buffers_.back()->data(), messages_->pattern().Bytes(static_cast<uint64_t>(message)), bytes);
    regions_.push_back(Register(buffers_.back().get()));
  }
  SendArgs args;
  args.data = buffers_[message]->data();
  args.bytes = bytes;
  args.tag = messages_->Tag(message);
  args.region = regions_[message];
  return plugin_->Send(comm_, args, &posted->request);
}

void SeededSender::Done(const Posted& posted, const int* sizes) {
  const size_t bytes = messages_->Bytes(posted.first);
  if (sizes[0] != static_cast<int>(bytes)) Wrong(absl::StrCat("a send of ", bytes, " bytes says ", sizes[0]));
  std::memset(buffers_[posted.first]->data(), kScribble, bytes);
}

absl::Status SeededReceiver::Post(Posted* posted) {
  void* data[kReceivesMax];
  size_t bytes[kReceivesMax];
  int tags[kReceivesMax];
  MemoryRegion* regions[kReceivesMax];
  const int most = std::min(group_max_, std::max(limit_ - posted->first, 1));
  posted->count = static_cast<int>(rng_.Between(1, static_cast<uint64_t>(most)));
  posted->optional = group_max_ == 1 && rng_.OneIn(3);
  for (int i = 0; i < posted->count; ++i) {
    const int message = posted->first + i;
    if (static_cast<int>(buffers_.size()) == message) {
      buffers_.push_back(std::make_unique<GuardedBuffer>(messages_->Capacity(message)));
      regions_.push_back(Register(buffers_.back().get()));
    }
    data[i] = buffers_[message]->data();
    bytes[i] = messages_->Capacity(message);
    tags[i] = messages_->Tag(message);
    regions[i] = regions_[message];
  }
  ReceiveArgs args;
  args.count = posted->count;
  args.data = data;
  args.bytes = bytes;
  args.tags = tags;
  args.regions = regions;
  args.optional_completion = posted->optional;
  return plugin_->Receive(comm_, args, &posted->request);
}

void SeededReceiver::Done(const Posted& posted, const int* sizes) {
  if (posted.optional) return;
  for (int i = 0; i < posted.count; ++i) {
    const size_t bytes = messages_->Bytes(posted.first + i);
    if (sizes[i] != static_cast<int>(bytes)) {
      Wrong(absl::StrCat("message ", posted.first + i, " has ", bytes, " bytes, test says ", sizes[i]));
    }
    Check(posted.first + i);
  }
}

void SeededReceiver::Check(int message) {
  const size_t bytes = messages_->Bytes(message);
  std::string text = messages_->pattern().Check(static_cast<uint64_t>(message), buffers_[message]->data(), bytes);
  if (text.empty()) text = buffers_[message]->Check(bytes, messages_->Capacity(message));
  if (!text.empty()) Wrong(absl::StrCat("message ", message, ": ", text));
}

void SeededReceiver::CheckAll() {
  for (int message = 0; message < next_; ++message) Check(message);
}

}  // namespace tcpx
