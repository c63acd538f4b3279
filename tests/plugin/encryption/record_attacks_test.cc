// Somebody between two ranks who knows the protocol and has no secret: at each lane, at the health socket, in both
// directions, in every mode, he changes, drops, repeats, exchanges and moves records, cuts and resets
// sockets, and says again what was said before. Whatever he does, no wrong byte is ever in a receive that completes,
// and nobody waits for ever: what only cuts is healed, where lanes heal; all else ends the connection, at both ends,
// with an error that says so, and no other connection.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/plugin/encryption/record_middle.h"
#include "tests/support/pattern.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr char kNotAuthentic[] =
    "bytes came that are not the peer's: a record was changed, repeated, left out or moved on the path (TCPX_ENCRYPT)";
constexpr char kCutRecord[] =
    "the stream ended in the middle of a record: the peer is gone, or it was cut on the path (TCPX_ENCRYPT)";
constexpr char kLostAcknowledged[] = "the peer does not have what its kernel has acknowledged";
constexpr char kClosed[] = "the peer closed the connection";
constexpr char kBroken[] = "Broken pipe";
constexpr char kEndedAlone[] = "a lane has ended without its connection";
constexpr char kReset[] = "Connection reset by peer";

constexpr int kConnections = 2;
// As NCCL has posted at most.
constexpr size_t kAhead = 8;
// Each round has messages for lane 0, enough that every length comes, and for a bulk lane.
constexpr size_t kSizes[] = {8, 30'000, 400'000, 30'000};
constexpr size_t kLongest = 400'000;
// Messages after the attack, so that what is missing shows.
constexpr size_t kMore = 24;
// The attack has come long before.
constexpr size_t kMost = 4000;

// One end of a connection, which sends or receives all messages in order.
class End {
 public:
  End(NetClient* net, void* comm, const Pattern& pattern, uint64_t first, bool receives)
      : net_(net), comm_(comm), pattern_(pattern), first_(first), receives_(receives) {}

  // Posts up to `until`, and tests what is posted.
  void Step(size_t until) {
    while (error_.empty() && posted_ < until && open_.size() < kAhead && Post()) ++posted_;
    for (auto& request : open_) {
      if (request.handle != nullptr) Test(&request);
    }
    while (!open_.empty() && open_.front().handle == nullptr) open_.pop_front();
  }

  size_t posted() const { return posted_; }
  size_t done() const { return posted_ - open_.size(); }
  const std::string& error() const { return error_; }

 private:
  struct Request {
    void* handle = nullptr;  // null: it is over
    size_t message = 0;
    std::vector<char> data;
  };

  static size_t SizeOf(size_t message) { return kSizes[message % std::size(kSizes)]; }

  bool Post() {
    open_.emplace_back();
    Request* const request = &open_.back();
    request->message = posted_;
    size_t bytes = SizeOf(posted_);
    if (receives_) {
      request->data.assign(bytes, '?');
    } else {
      const char* const text = pattern_.Bytes(first_ + posted_);
      request->data.assign(text, text + bytes);
    }
    void* data = &request->data[0];
    int tag = 0;
    const ncclResult_t result = receives_
                                    ? net_->Irecv(comm_, 1, &data, &bytes, &tag, nullptr, nullptr, &request->handle)
                                    : net_->Isend(comm_, data, bytes, tag, nullptr, nullptr, &request->handle);
    if (result != ncclSuccess) Fails(result);
    if (request->handle == nullptr) open_.pop_back();
    return result == ncclSuccess && !open_.empty() && open_.back().message == posted_;
  }

  void Test(Request* request) {
    int done = 0;
    int size = 0;
    const ncclResult_t result = net_->Test(request->handle, &done, &size);
    if (result != ncclSuccess) Fails(result);
    if (result == ncclSuccess && done == 0) return;
    request->handle = nullptr;
    if (result != ncclSuccess) left_.push_back(std::move(request->data));
    if (result != ncclSuccess || !receives_) return;
    const std::string wrong = pattern_.Check(first_ + request->message, request->data.data(), request->data.size());
    EXPECT_EQ(wrong, "") << "WRONG BYTES in message " << request->message;
    EXPECT_EQ(static_cast<size_t>(size), request->data.size());
  }

  void Fails(ncclResult_t result) {
    if (error_.empty()) error_ = absl::StrCat("error ", static_cast<int>(result));
  }

  NetClient* const net_;
  void* const comm_;
  const Pattern& pattern_;
  const uint64_t first_;
  const bool receives_;
  size_t posted_ = 0;
  std::deque<Request> open_;
  std::deque<std::vector<char>> left_;  // of requests that failed, until the connection is closed
  std::string error_;
};

enum class Outcome {
  kTold,       // both ends fail, and a warning says that bytes were not the peer's (or, where a reset comes with it
               // that nobody heals, that)
  kHealed,     // where lanes heal; else both ends fail, and a warning says that the socket ended
  kToldOrNot,  // both ends fail and report that what was acknowledged is lost; or it had not been, and is sent again
};

struct Case {
  const char* name;
  RecordAttack attack;
  Outcome outcome;
  int lanes = 2;  // With more nobody could say that a lane is used again.
};

struct Setting {
  const char* name;
  int threads;
  const char* engine;
  const char* zero_copy;
  bool heals;
};

using Param = std::tuple<Setting, Case>;
std::string NameOf(const Param& param) {
  const Setting& setting = std::get<0>(param);
  return absl::StrCat(std::get<1>(param).name, "_", setting.name, setting.heals ? "_heals" : "");
}
void PrintTo(const Param& param, std::ostream* out) { *out << NameOf(param); }

class RecordAttackTest : public ::testing::TestWithParam<Param> {
 protected:
  const Case& attacked() const { return std::get<1>(GetParam()); }
  bool heals() const { return std::get<0>(GetParam()).heals; }

  Mode Settings() const {
    const Setting& setting = std::get<0>(GetParam());
    Mode settings = Encrypted(Mode());
    settings.threads = setting.threads;
    settings.engine = setting.engine;
    settings.lanes = attacked().lanes;
    settings.environment["TCPX_ZEROCOPY"] = setting.zero_copy;
    settings.environment["TCPX_LINGER"] = "1";
    settings.environment["TCPX_MAX_RECVS"] = "2";  // Then there are credits.
    settings.environment["TCPX_SPREAD_ERRORS"] = "0";
    settings.environment["TCPX_HEAL"] = heals() ? "1" : "0";
    settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
    return settings;
  }

  void Open() {
    ClearLog();
    auto opened = TestPlugin::Open(Settings());
    ASSERT_TRUE(opened.ok()) << opened.status();
    plugin_ = *std::move(opened);
    auto listen = plugin_->Listen(handle_);
    ASSERT_TRUE(listen.ok()) << listen.status();
    Handle handle;
    ASSERT_EQ(DecodeHandle(handle_, &handle), nullptr);
    middle_ = std::make_unique<RecordMiddle>(handle.address, attacked().attack, seed_);
    for (int i = 0; i < kConnections; ++i) {
      auto pair = plugin_->ConnectTo(*listen, handle_);
      ASSERT_TRUE(pair.ok()) << pair.status();
      pairs_.push_back(*pair);
      const uint64_t first = static_cast<uint64_t>(i) * 100'000;
      sends_.push_back(std::make_unique<End>(&plugin_->net(), pair->send, pattern_, first, false));
      receives_.push_back(std::make_unique<End>(&plugin_->net(), pair->receive, pattern_, first, true));
    }
  }

  bool Failed(size_t i) const { return !receives_[i]->error().empty() && !sends_[i]->error().empty(); }
  bool MustFail() const { return attacked().outcome == Outcome::kTold || !heals(); }

  // Until both ends of the attacked connection have failed, or some messages after the attack are through.
  void Talk() {
    const size_t here = static_cast<size_t>(attacked().attack.at.connection);
    Deadline deadline;
    size_t last = kMost;
    for (;;) {
      const bool decided = middle_->attacked() && (!MustFail() || Failed(here));
      if (last == kMost && decided) last = std::max(receives_[0]->posted(), receives_[1]->posted()) + kMore;
      bool over = true;
      for (size_t i = 0; i < pairs_.size(); ++i) {
        receives_[i]->Step(last);
        // Who hears nothing sends on.
        sends_[i]->Step(receives_[i]->error().empty() ? receives_[i]->posted() : kMost);
        over = over && (Failed(i) || (receives_[i]->done() >= last && sends_[i]->done() >= last));
      }
      if (over) return;
      ASSERT_TRUE(deadline.Yield()) << "HANGS; attacked " << middle_->attacked() << "\n" << LogText();
    }
  }

  void Close() {
    for (const Ends& pair : pairs_) (void)plugin_->Close(pair);
    middle_ = nullptr;
    plugin_ = nullptr;
  }

  bool Warned(const char* text) {
    for (const std::string& line : LogLines(NCCL_LOG_WARN)) {
      if (absl::StrContains(line, text)) return true;
    }
    return false;
  }

  void ExpectOutcome() {
    const size_t here = static_cast<size_t>(attacked().attack.at.connection);
    const bool failed = !receives_[here]->error().empty();
    EXPECT_EQ(failed, !sends_[here]->error().empty()) << LogText();
    const bool may = attacked().outcome != Outcome::kHealed || !heals();
    EXPECT_TRUE(failed ? may : !MustFail()) << receives_[here]->error() << "\n" << LogText();
    if (failed) {
      EXPECT_TRUE(Explained()) << LogText();
    }
    if (attacked().attack.at.health) return;
    EXPECT_EQ(receives_[1 - here]->error() + sends_[1 - here]->error(), "") << LogText();
  }

  bool Explained() {
    if (attacked().outcome == Outcome::kTold && (heals() || attacked().attack.kind != RecordAttack::Kind::kFlipReset)) {
      return Warned(kNotAuthentic);
    }
    if (heals()) return Warned(kLostAcknowledged);
    // The order may vary: the sender may hear of a reset before its receiver reads what was changed.
    return Warned(kNotAuthentic) || Warned(kClosed) || Warned(kReset) || Warned(kBroken) || Warned(kCutRecord) ||
           Warned(kEndedAlone);
  }

  const uint64_t seed_ = TestSeed();
  const Pattern pattern_{seed_, kLongest};
  std::vector<Ends> pairs_;
  std::vector<std::unique_ptr<End>> sends_;
  std::vector<std::unique_ptr<End>> receives_;
  std::unique_ptr<TestPlugin> plugin_;
  std::unique_ptr<RecordMiddle> middle_;
  char handle_[NCCL_NET_HANDLE_MAXSIZE] = {};
};

TEST_P(RecordAttackTest, BringsNoWrongByteAndNobodyWaits) {
  const std::string why = Settings().ReasonToSkip();
  if (!why.empty()) GTEST_SKIP() << why;
  ASSERT_NO_FATAL_FAILURE(Open());
  Talk();
  if (!HasFailure()) ExpectOutcome();
  Close();
}

using Kind = RecordAttack::Kind;

constexpr Place Lane(int lane, bool forward = true, int connection = 0) {
  Place place;
  place.lane = lane;
  place.forward = forward;
  place.connection = connection;
  return place;
}

constexpr Place HealthSocket(bool forward) {
  Place place;
  place.health = true;
  place.forward = forward;
  return place;
}

RecordAttack Make(Kind kind, const Place& at, int record = 7) {
  RecordAttack attack;
  attack.kind = kind;
  attack.at = at;
  attack.record = record;
  return attack;
}

RecordAttack MakeFrom(Kind kind, const Place& at, const Place& from) {
  RecordAttack attack = Make(kind, at);
  attack.from = from;
  return attack;
}

std::vector<Case> Cases() {
  const Place credits = Lane(0, false);
  const Place express = Lane(0);
  const Place bulk = Lane(1);
  const auto put_in = [](const Place& at, const Place& from) { return MakeFrom(Kind::kPutIn, at, from); };
  return {
      {"FlipExpress", Make(Kind::kFlip, express), Outcome::kTold},
      {"FlipBulk", Make(Kind::kFlip, bulk), Outcome::kTold},
      {"FlipCredit", Make(Kind::kFlip, credits), Outcome::kTold},
      {"FlipLengthExpress", Make(Kind::kFlipLength, express), Outcome::kTold},
      {"FlipLengthBulk", Make(Kind::kFlipLength, bulk), Outcome::kTold},
      {"DropExpress", Make(Kind::kDrop, express), Outcome::kTold},
      {"DropBulk", Make(Kind::kDrop, bulk), Outcome::kTold},
      {"DropCredit", Make(Kind::kDrop, credits), Outcome::kTold},
      {"RepeatExpress", Make(Kind::kRepeat, express), Outcome::kTold},
      {"RepeatBulk", Make(Kind::kRepeat, bulk), Outcome::kTold},
      {"RepeatCredit", Make(Kind::kRepeat, credits), Outcome::kTold},
      {"SwapExpress", Make(Kind::kSwap, express), Outcome::kTold},
      {"SwapBulk", Make(Kind::kSwap, bulk), Outcome::kTold},
      {"SwapCredits", Make(Kind::kSwap, credits), Outcome::kTold},
      {"BulkToAnotherLane", put_in(Lane(2), bulk), Outcome::kTold, 3},
      {"BulkToExpress", put_in(express, bulk), Outcome::kTold},
      {"ExpressToBulk", put_in(bulk, express), Outcome::kTold},
      {"CreditToItsSender", put_in(express, credits), Outcome::kTold},
      {"BulkToItsSender", put_in(Lane(1, false), bulk), Outcome::kTold},
      {"ExpressToItsSender", put_in(credits, express), Outcome::kTold},
      {"ExpressToAnotherConnection", put_in(Lane(0, true, 1), express), Outcome::kTold},
      {"BulkToAnotherConnection", put_in(Lane(1, true, 1), bulk), Outcome::kTold},
      {"CreditToAnotherConnection", put_in(Lane(0, false, 1), credits), Outcome::kTold},
      {"ExpressToHealth", put_in(HealthSocket(true), express), Outcome::kTold},
      {"ExpressToTheHealthOfItsSender", put_in(HealthSocket(false), express), Outcome::kTold},
      {"ResetExpress", Make(Kind::kReset, express), Outcome::kHealed},
      {"ResetBulk", Make(Kind::kReset, bulk), Outcome::kHealed},
      {"ResetAtACredit", Make(Kind::kReset, credits), Outcome::kHealed},
      {"ResetHealth", MakeFrom(Kind::kReset, HealthSocket(true), express), Outcome::kHealed},
      {"CutResetExpress", Make(Kind::kCutReset, express), Outcome::kToldOrNot},
      {"CutResetBulk", Make(Kind::kCutReset, bulk), Outcome::kToldOrNot},
      {"CutResetCredit", Make(Kind::kCutReset, credits), Outcome::kToldOrNot},
      {"EndExpress", Make(Kind::kEnd, express), Outcome::kHealed},
      {"EndBulk", Make(Kind::kEnd, bulk), Outcome::kHealed},
      {"EndAtACredit", Make(Kind::kEnd, credits), Outcome::kHealed},
      {"EndHealth", MakeFrom(Kind::kEnd, HealthSocket(true), express), Outcome::kHealed},
      {"FlipResetExpress", Make(Kind::kFlipReset, express), Outcome::kTold},
      {"FlipResetBulk", Make(Kind::kFlipReset, bulk), Outcome::kTold},
      {"FlipResetCredit", Make(Kind::kFlipReset, credits), Outcome::kTold},
      {"SwallowResetExpress", Make(Kind::kSwallowReset, express), Outcome::kToldOrNot},
      {"SwallowResetBulk", Make(Kind::kSwallowReset, bulk), Outcome::kToldOrNot},
      {"SwallowResetCredits", Make(Kind::kSwallowReset, credits), Outcome::kToldOrNot},
  };
}

// Where nothing heals there is no next socket.
std::vector<Case> HealingCases() {
  return {
      {"ReplayExpress", Make(Kind::kReplay, Lane(0)), Outcome::kTold},
      {"ReplayBulk", Make(Kind::kReplay, Lane(1)), Outcome::kTold},
      {"ReplayCredits", Make(Kind::kReplay, Lane(0, false)), Outcome::kTold},
  };
}

// A minute and a half with TCPX_TEST_LONG=1.
std::vector<Setting> Settings(bool healing_only) {
  std::vector<Setting> settings = {{"caller", 0, "epoll", "auto", true}, {"io_uring", 2, "io_uring", "auto", true}};
  if (LongRun()) {
    settings.push_back({"epoll", 2, "epoll", "auto", true});
    settings.push_back({"zero_copy", 2, "io_uring", "on", true});
  }
  if (healing_only) return settings;
  settings.push_back({"epoll", 2, "epoll", "auto", false});
  if (LongRun()) {
    settings.push_back({"caller", 0, "epoll", "auto", false});
    settings.push_back({"io_uring", 2, "io_uring", "auto", false});
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Attacks, RecordAttackTest,
                         ::testing::Combine(::testing::ValuesIn(Settings(false)), ::testing::ValuesIn(Cases())),
                         [](const auto& one) { return NameOf(one.param); });
INSTANTIATE_TEST_SUITE_P(Replays, RecordAttackTest,
                         ::testing::Combine(::testing::ValuesIn(Settings(true)), ::testing::ValuesIn(HealingCases())),
                         [](const auto& one) { return NameOf(one.param); });

}  // namespace
}  // namespace tcpx
