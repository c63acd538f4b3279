// What a rank of a group hears from a peer: batches of records and the payloads that follow them, in messages of any
// length, whose ends may come late. Nothing outside of the regions is touched, whose neighbours are pages that end the
// process; an answer is taken once; an error is in words that fit the log.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/rma_receiver.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/guarded_pages.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {
namespace {

constexpr size_t kWindowBytes = 4096;
constexpr size_t kSignalBytes = 64;
constexpr size_t kGottenBytes = 32;
constexpr uint64_t kAskedToken = 7;

// Receives that are matched with messages in the order in which they were posted.
class FuzzNet final : public FakePlugin {
 public:
  struct Posted {
    Request request;
    char* data = nullptr;
    size_t capacity = 0;
    int bytes = -1;      // that have come; -1: nothing
    bool ended = false;  // a test says so
    bool is(const Request* asked) const { return &request == asked; }
  };

  absl::Status Receive(Comm*, const ReceiveArgs& args, Request** posted) override {
    posts_.push_back(std::make_unique<Posted>());
    posts_.back()->data = static_cast<char*>(args.data[0]);
    posts_.back()->capacity = args.bytes[0];
    *posted = &posts_.back()->request;
    return absl::OkStatus();
  }
  absl::Status Test(Request* asked, bool* is_done, int* sizes) override {
    for (const auto& one : posts_) {
      if (!one->is(asked)) continue;
      *is_done = one->ended;
      if (*is_done && sizes != nullptr) *sizes = one->bytes;
    }
    return absl::OkStatus();
  }
  // False: nothing is posted, or the message is too large, which ends a connection.
  bool Deliver(const std::string& message, bool late) {
    if (next_ == posts_.size() || message.size() > posts_[next_]->capacity) return false;
    Posted& to = *posts_[next_++];
    if (!message.empty()) std::memcpy(to.data, message.data(), message.size());
    to.bytes = static_cast<int>(message.size());
    to.ended = !late;
    return true;
  }
  void EndAll() {
    for (size_t i = 0; i < next_; ++i) posts_[i]->ended = true;
  }

 private:
  std::vector<std::unique_ptr<Posted>> posts_;
  size_t next_ = 0;  // of a message
};

// A rank with a window, a few words for signals, and one get under way.
class Target final : public RmaReceiver::Owner {
 public:
  Target() {
    std::memset(window_.data(), 0, kWindowBytes);
    table_.Add(window_.data(), kWindowBytes, MemoryType::kHost, RmaUse::kWindow);
    table_.Add(signals_.data(), kSignalBytes, MemoryType::kHost, RmaUse::kOther);
    table_.Add(gotten_.data(), kGottenBytes, MemoryType::kHost, RmaUse::kOther);
    wanted_.data = gotten_.data();
    wanted_.region = *table_.FindId(2);
  }
  absl::Status Progress() {
    bool moved = false;
    return receiver_.Progress(&moved);
  }
  // The first error.
  absl::Status Hear(const std::string& message, bool late) {
    if (!net_.Deliver(message, late)) return absl::CancelledError();
    return Progress();
  }
  absl::Status End() {
    net_.EndAll();
    return Progress();
  }

 private:
  const RmaRegionTable& regions() const override { return table_; }
  absl::Status Greeted(RmaReceiver*, const RmaRecord&) override { return absl::OkStatus(); }
  absl::Status Asked(uint32_t, const RmaRecord& get) override {
    const RmaRegion* const region = table_.FindId(get.region);
    if (region == nullptr || !region->Contains(get.offset, get.bytes))
      return absl::UnavailableError("a get of too much");
    // What is within its region can be read.
    uint64_t sum = 0;
    for (uint64_t i = 0; i < get.bytes; ++i) sum += static_cast<unsigned char>(region->data[get.offset + i]);
    read_ += sum;
    return absl::OkStatus();
  }
  RmaReceiver::Wanted* Find(uint32_t, const RmaRecord& gotten) override {
    const bool asked = !answered_ && gotten.token == kAskedToken && gotten.bytes == kGottenBytes;
    return asked ? &wanted_ : nullptr;
  }
  void Answered(uint64_t token) override {
    Require(!answered_ && token == kAskedToken, "an answer is given once, to what was asked");
    answered_ = true;
  }
  void PeerClosed(uint32_t, bool /*orderly*/) override {
    Require(!closed_, "a peer closes once");
    closed_ = true;
  }

  FuzzNet net_;
  Comm comm_;
  GuardedPages window_{kWindowBytes};
  GuardedPages signals_{kSignalBytes};
  GuardedPages gotten_{kGottenBytes};
  RmaRegionTable table_;
  RmaReceiver::Wanted wanted_;
  bool answered_ = false;
  bool closed_ = false;
  uint64_t read_ = 0;
  RmaReceiver receiver_{&net_, &comm_, this};
};

void CheckText(const absl::Status& status) {
  Require(status.message().size() < 512, "no peer writes long lines into the log");
  for (const char c : status.message()) Require(c >= ' ' && c <= '~', "no peer writes control characters into the log");
}

std::string Hello() {
  RmaRecord record;
  record.kind = RmaKind::kHello;
  record.token = 1;
  record.bytes = 2;
  std::string text(record.Space(), '\0');
  WriteRmaRecord(record, nullptr, &text[0]);
  return text;
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tcpx;
  constexpr uint16_t kLate = 0x8000;
  Input input(data, size);
  const bool greeted = input.Take<uint8_t>() != 0;
  Target target;
  absl::Status status = target.Progress();
  if (greeted) status = target.Hear(Hello(), false);
  while (status.ok() && !input.empty()) {
    const auto length = input.Take<uint16_t>();
    const std::string message = input.TakeBytes(length & ~kLate);
    status = target.Hear(message, (length & kLate) != 0);
  }
  if (status.ok()) status = target.End();
  CheckText(status);
  return 0;
}
