// Up to four lanes of one receive comm, driven by the input: which bytes come on which lane, where each read ends, when
// receives are posted and tested, when a lane ends. The bytes go through ReceiveLane and PostedReceiveTable, and
// through a plain model (lane_model.h); after each step both must agree.
//
// An input is a byte of settings (1: staged; 2 and 4: lanes - 1; 8: borrows for flag lines only) and then steps. In a
// step's first byte the low three bits say what, the next two on which lane, the rest which variant:
//
//   0 post     u16 capacity; variant 1: flag lines  4 end the lane
//   1 read     u8 most bytes                        5 frame: u8 kind, u8 padding, i8 sequence (from the next to post),
//   2 read all                                        u16 length, offset, message size; variant 1: without its body
//   3 nothing came                                  6 bytes: u8 count, the bytes
//                                                   7 test all requests
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net_socket/message/posted_receive.h"
#include "net_socket/message/wire.h"
#include "net_socket/receive/lane_stage.h"
#include "net_socket/receive/receive_lane.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/lane_model.h"
#include "tests/support/pattern.h"

namespace tcpx {
namespace {

constexpr size_t kSlots = 4;
constexpr size_t kPostsMax = 64;
// The most bytes of all receives, and of each stream: enough for several that fill the staging, few enough to be quick.
constexpr size_t kPostedBytesMax = 256 * 1024;
constexpr size_t kStreamBytesMax = 256 * 1024;

// One lane, its twin, and the socket that feeds both.
struct FuzzedLane {
  FuzzedLane(PostedReceiveTable* table, StagePool* stages, ReceiveLane::Borrows borrows, ReceivesModel* receives)
      : lane(table, stages, 0, borrows), model(receives) {}

  size_t waiting() const { return stream.size() - at; }

  ReceiveLane lane;
  LaneModel model;
  std::string stream;
  size_t at = 0;
  absl::Status first_error;
};

class Run {
 public:
  explicit Run(Input input) : input_(input) {
    const uint8_t settings = input_.Take<uint8_t>();
    StagePool* const stages = (settings & 1) != 0 ? &stages_ : nullptr;
    const int lanes = 1 + (settings >> 1) % 4;
    const auto borrows = (settings & 8) != 0 ? ReceiveLane::Borrows::kForFlagLines : ReceiveLane::Borrows::kAlways;
    for (int i = 0; i < lanes; ++i) {
      lanes_.push_back(std::make_unique<FuzzedLane>(&table_, stages, borrows, &receives_));
    }
  }

  void Steps() {
    while (!input_.empty()) {
      Step();
      for (auto& lane : lanes_) CheckLane(lane.get());
      CheckRequests();
    }
    for (size_t i = 0; i < posted_.size(); ++i) CheckBuffer(i);
  }

 private:
  struct Posted {
    std::unique_ptr<GuardedBuffer> buffer;
    PostedReceive* receive = nullptr;  // null once reported done
    bool flag_lines = false;
  };

  void Step() {
    const uint8_t op = input_.Take<uint8_t>();
    FuzzedLane& lane = *lanes_[(op >> 3) % 4 % lanes_.size()];
    switch (op & 7) {
      case 0:
        return Post(input_.Take<uint16_t>(), op >> 5 == 1);
      case 1:
        Read(&lane, input_.Take<uint8_t>());
        return;
      case 2:
        while (Read(&lane, lane.waiting())) {
        }
        return;
      case 3:
        Read(&lane, 0);
        return;
      case 4:
        return End(&lane);
      case 5:
        return Frame(&lane, op >> 5);
      case 6:
        return Send(&lane, input_.TakeBytes(input_.Take<uint8_t>()));
      case 7:
        return Test();
    }
  }

  void Post(size_t capacity, bool flag_lines) {
    if (table_.NextSlot().in_use || posted_.size() == kPostsMax) return;
    if (posted_bytes_ + capacity > kPostedBytesMax) return;
    posted_bytes_ += capacity;
    Posted posted;
    posted.buffer = std::make_unique<GuardedBuffer>(capacity);
    posted.receive = table_.Post(posted.buffer->data(), capacity, 0, nullptr, {nullptr, flag_lines});
    posted.flag_lines = flag_lines;
    posted_.push_back(std::move(posted));
    receives_.Post(capacity);
  }

  // One read of at most `bytes_max`, 0: none was there. True when bytes came.
  bool Read(FuzzedLane* lane, size_t bytes_max) {
    iovec iov[ReceiveLane::kIovMax];
    const int count = Prepare(lane, iov);
    if (count == 0) return false;
    const char* const from = lane->stream.data() + lane->at;
    const size_t bytes = std::min(bytes_max, lane->waiting());
    size_t done = 0;
    for (int i = 0; i < count && done < bytes; ++i) {
      const size_t step = std::min(iov[i].iov_len, bytes - done);
      std::memcpy(iov[i].iov_base, from + done, step);
      done += step;
    }
    if (done == 0) {
      lane->lane.NothingCame();
      return false;
    }
    lane->lane.Advance(done);
    lane->model.Arrive(from, done);
    lane->at += done;
    return true;
  }

  int Prepare(FuzzedLane* lane, iovec* iov) {
    const int count = lane->lane.Prepare(iov);
    if (lane->model.parked()) lane->model.Resume();
    CheckLane(lane);
    const bool reads = lane->model.verdict() == Verdict::kFine && !lane->model.parked() && !lane->model.ended();
    Require((count > 0) == reads, "a lane reads exactly while it is neither parked nor ended nor failed");
    for (int i = 0; i < count; ++i) {
      Require(iov[i].iov_len > 0, "every place has room");
      CheckPlace(static_cast<const char*>(iov[i].iov_base));
    }
    return count;
  }

  // The kernel's copy keeps no order.
  void CheckPlace(const char* place) const {
    for (size_t i = 0; i < posted_.size(); ++i) {
      const char* const data = posted_[i].buffer->data();
      const bool inside = place >= data && place < data + receives_.all()[i].buffer.size();
      Require(!inside || !posted_[i].flag_lines, "data whose flags a GPU polls is staged");
    }
  }

  void End(FuzzedLane* lane) {
    iovec iov[ReceiveLane::kIovMax];
    if (Prepare(lane, iov) == 0) return;
    lane->stream.resize(lane->at);
    lane->lane.End();
    lane->model.End();
  }

  void Frame(FuzzedLane* lane, int variant) {
    FrameHeader header;
    header.kind = static_cast<FrameKind>(input_.Take<uint8_t>());
    header.padding = input_.Take<uint8_t>();
    header.sequence = posted_.size() + static_cast<uint64_t>(int64_t{input_.Take<int8_t>()});
    header.length = input_.Take<uint16_t>();
    header.offset = input_.Take<uint16_t>();
    header.message_bytes = input_.Take<uint16_t>();
    std::string frame(kHeaderBytes, '\0');
    EncodeHeader(header, &frame[0]);
    if (variant != 1) {
      frame.append(payloads_, frames_ % 256, header.length);
      frame.append(header.padding, '\n');
    }
    ++frames_;
    Send(lane, frame);
  }

  void Send(FuzzedLane* lane, const std::string& bytes) {
    if (!lane->lane.ended() && lane->stream.size() + bytes.size() <= kStreamBytesMax) lane->stream += bytes;
  }

  void Test() {
    for (size_t i = 0; i < posted_.size(); ++i) {
      Posted& posted = posted_[i];
      if (posted.receive == nullptr || !posted.receive->done.load()) continue;
      CheckBuffer(i);
      const ReceivesModel::Receive& receive = receives_.all()[i];
      Require(posted.receive->message_bytes.load() == receive.message_bytes, "the size that is reported");
      posted.receive->in_use = false;
      posted.receive = nullptr;
    }
  }

  void CheckLane(FuzzedLane* lane) {
    const absl::Status& status = lane->lane.status();
    const Verdict verdict = lane->model.verdict();
    Require(status.ok() == (verdict == Verdict::kFine), "an error exactly where the model has one");
    Require(lane->lane.ended() == lane->model.ended(), "the end");
    if (status.ok()) {
      Require(lane->lane.parked() == lane->model.parked(), "parked exactly without a posted receive");
      Require(lane->lane.between_frames() == lane->model.between_frames(), "between frames");
      return;
    }
    const auto code =
        verdict == Verdict::kTooLarge ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable;
    Require(status.code() == code, "the code of the error");
    if (lane->first_error.ok()) CheckText(status);
    if (lane->first_error.ok()) lane->first_error = status;
    Require(status == lane->first_error, "the first error stays");
  }

  static void CheckText(const absl::Status& status) {
    Require(status.message().size() < 2 * kCauseBytesMax, "no peer writes long lines into the log");
    for (const char c : status.message())
      Require(c >= ' ' && c <= '~', "no peer writes control characters into the log");
  }

  void CheckRequests() {
    uint64_t completed = 0;
    for (auto& lane : lanes_) completed += lane->lane.messages_completed();
    Require(completed == receives_.completed(), "each message is completed once");
    for (size_t i = 0; i < posted_.size(); ++i) {
      if (posted_[i].receive == nullptr) continue;
      Require(posted_[i].receive->done.load() == receives_.all()[i].done, "done exactly when every byte has landed");
    }
  }

  // Also of what was reported done long ago: nothing is written after that.
  void CheckBuffer(size_t i) {
    const std::string& expected = receives_.all()[i].buffer;
    const GuardedBuffer& buffer = *posted_[i].buffer;
    Require(std::memcmp(buffer.data(), expected.data(), expected.size()) == 0, "exactly the bytes of the stream");
    Require(buffer.Check(expected.size(), expected.size()).empty(), "nothing outside the posted buffer is written");
  }

  Input input_;
  // Kept, as a process does; and its buffers are large.
  static StagePool stages_;
  static const std::string payloads_;
  PostedReceiveTable table_{kSlots};
  ReceivesModel receives_{kSlots};
  std::vector<std::unique_ptr<FuzzedLane>> lanes_;
  std::vector<Posted> posted_;
  size_t posted_bytes_ = 0;
  size_t frames_ = 0;
};

// No two frames of one run bring the same bytes to the same place, until 256 have come.
std::string Payloads() {
  std::string bytes(256 + 65536, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i + (i >> 8) * 3);
  return bytes;
}

StagePool Run::stages_;
const std::string Run::payloads_ = Payloads();

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tcpx::Run(tcpx::Input(data, size)).Steps();
  return 0;
}
