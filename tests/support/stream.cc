#include "tests/support/stream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/time/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/processes.h"

namespace tcpx {
namespace {

constexpr int kTag = 7;
// A message's content repeats after this many bytes, a prime: a piece at a wrong offset shows.
constexpr size_t kPeriod = 251;

char* Map(void* at, size_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at == nullptr ? 0 : MAP_FIXED);
  void* mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  TCPX_REQUIRE(mapped != MAP_FAILED);
  // Half of the time of some tests went into faults of small pages. Where there are no large ones nothing changes.
  (void)madvise(mapped, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(mapped);
}

}  // namespace

Stream::Stream(NetClient* net, Way way, void* comm, const Shape& shape)
    : net_(net),
      way_(way),
      comm_(comm),
      shape_(shape),
      memory_bytes_(shape.message_bytes * static_cast<size_t>(shape.window)),
      memory_(Map(nullptr, memory_bytes_)),
      requests_(static_cast<size_t>(shape.window), nullptr) {
  if (way == Way::kReceive) std::memset(memory_, kBlank, memory_bytes_);
  for (int slot = 0; way == Way::kSend && slot < shape.window; ++slot) Fill(slot);
  TCPX_REQUIRE(net_->RegMr(comm_, memory_, memory_bytes_, NCCL_PTR_HOST, &memory_handle_) == ncclSuccess);
}

Stream::~Stream() { munmap(memory_, memory_bytes_); }

// 128 to 236: none of kBlank, kFresh and kPoison.
uint8_t Stream::ByteAt(int64_t slot, size_t at) {
  return static_cast<uint8_t>(128 + (at % kPeriod * 7 + static_cast<size_t>(slot) * 13) % 109);
}

void Stream::Fill(int64_t message) {
  char* slot = Slot(message);
  for (size_t i = 0; i < kPeriod && i < shape_.message_bytes; ++i) {
    slot[i] = static_cast<char>(ByteAt(message % shape_.window, i));
  }
  for (size_t have = kPeriod; have < shape_.message_bytes; have *= 2) {
    std::memcpy(slot + have, slot, std::min(have, shape_.message_bytes - have));
  }
}

void Stream::Check(int64_t message, int got) const {
  TCPX_REQUIRE(static_cast<size_t>(got) == shape_.message_bytes, "message ", message, " has ", got, " bytes");
  if (!shape_.checked) return;
  const char* slot = Slot(message);
  for (size_t i = 0; i < kPeriod && i < shape_.message_bytes; ++i) {
    TCPX_REQUIRE(static_cast<uint8_t>(slot[i]) == ByteAt(message % shape_.window, i), "message ", message, " byte ", i,
                 " is ", static_cast<uint8_t>(slot[i]));
  }
  if (shape_.message_bytes <= kPeriod) return;
  TCPX_REQUIRE(std::memcmp(slot, slot + kPeriod, shape_.message_bytes - kPeriod) == 0, "message ", message);
}

ncclResult_t Stream::Post() {
  const int64_t message = posted_;
  void** request = &requests_[static_cast<size_t>(message % shape_.window)];
  void* data = Slot(message);
  ncclResult_t result;
  if (way_ == Way::kSend) {
    result = net_->Isend(comm_, data, shape_.message_bytes, kTag, memory_handle_, nullptr, request);
  } else {
    if (shape_.checked) std::memset(data, kBlank, shape_.message_bytes);
    size_t size = shape_.message_bytes;
    int tag = kTag;
    *request = nullptr;
    result = net_->Irecv(comm_, 1, &data, &size, &tag, &memory_handle_, nullptr, request);
  }
  if (result == ncclSuccess && *request != nullptr) posted_ = message + 1;
  return result;
}

ncclResult_t Stream::TestOldest() {
  const int64_t message = finished_;
  int done = -1;
  int got = -1;
  const ncclResult_t result = net_->Test(requests_[static_cast<size_t>(message % shape_.window)], &done, &got);
  if (result != ncclSuccess || done == 0) return result;
  if (way_ == Way::kReceive) Check(message, got);
  finished_ = message + 1;
  return result;
}

void Stream::PostAll() {
  std::lock_guard<std::mutex> lock(posting_mutex_);
  while (posting_ && result_ == ncclSuccess && posted_ < shape_.count && in_flight() < shape_.window) {
    const int64_t before = posted_;
    result_ = Post();
    if (posted_ == before) break;
  }
}

void Stream::StopPosting() {
  std::lock_guard<std::mutex> lock(posting_mutex_);
  posting_ = false;
}

ncclResult_t Stream::Step() {
  const int64_t before = posted_ + finished_;
  PostAll();
  if (result_ == ncclSuccess && in_flight() > 0) result_ = TestOldest();
  in_vain_ = posted_ + finished_ == before && !complete() ? in_vain_ + 1 : 0;
  if (in_vain_ > 10 * Deadline::kSpins) usleep(Deadline::NapMicros(in_vain_ - 10 * Deadline::kSpins));
  return result_;
}

void Stream::Finish() {
  const absl::Time deadline = absl::Now() + kHungAfter;
  while (!complete()) {
    const ncclResult_t result = Step();
    TCPX_REQUIRE(result == ncclSuccess, "after ", finished(), " messages: ", result);
    TCPX_REQUIRE(absl::Now() < deadline, "after ", finished(), " messages");
  }
}

void Stream::Deregister() { TCPX_REQUIRE(net_->DeregMr(comm_, memory_handle_) == ncclSuccess); }

void Stream::ReplaceMemory(uint8_t byte) {
  Map(memory_, memory_bytes_);
  std::memset(memory_, byte, memory_bytes_);
}

void Stream::RequireOnly(uint8_t byte) const {
  TCPX_REQUIRE(static_cast<uint8_t>(memory_[0]) == byte);
  TCPX_REQUIRE(std::memcmp(memory_, memory_ + 1, memory_bytes_ - 1) == 0, "memory that was given back was written to");
}

void Stream::RequireUnfinishedPlausible() const {
  for (int64_t message = finished_; message < posted_; ++message) {
    const uint8_t* slot = reinterpret_cast<const uint8_t*>(Slot(message));
    for (size_t i = 0; i < shape_.message_bytes; ++i) {
      const bool plausible = slot[i] == kBlank || slot[i] == ByteAt(message % shape_.window, i);
      TCPX_REQUIRE(plausible, "message ", message, " byte ", i, " is ", slot[i]);
    }
  }
}

void BothWays::RunFor(int64_t messages) {
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  const auto enough = [messages](const Stream& stream, int64_t from) {
    return stream.finished() >= from + messages && stream.in_flight() > 0;
  };
  const int64_t sent = send.finished();
  const int64_t received = receive.finished();
  while (!enough(send, sent) || !enough(receive, received)) {
    TCPX_REQUIRE(send.Step() == ncclSuccess && receive.Step() == ncclSuccess, LogText());
    TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }
}

void BothWays::Finish() {
  const absl::Time deadline = absl::Now() + kHungAfter;
  while (!send.complete() || !receive.complete()) {
    TCPX_REQUIRE(send.Step() == ncclSuccess && receive.Step() == ncclSuccess, LogText());
    TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }
}

void Transfer(NetClient* net, const Ends& ends, const Stream::Shape& shape) {
  BothWays both(net, ends, shape);
  both.Finish();
  both.Deregister();
}

}  // namespace tcpx
