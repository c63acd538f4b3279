// Somebody with a group's ticket dials it with the plain net table, and sends what no rank sends: the group ends with
// words, or only that connection where it has not said who it is. The process lives, and nothing outside of the windows
// is touched, whose neighbours are pages that end the process.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/socket.h"
#include "net_socket/rma/record.h"
#include "tests/plugin/rma/rma_lab.h"
#include "tests/support/by_hand.h"
#include "tests/support/deadline.h"
#include "tests/support/guarded_pages.h"
#include "tests/support/plugin_log.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

constexpr int kRanks = 3;
// Who is attacked, and who the attacker says it is: at connect only the rank before has dialled.
constexpr int kVictim = 1;
constexpr uint64_t kClaimed = 2;
constexpr size_t kWindowBytes = 4096;

std::string Bytes(const RmaRecord& record, const std::string& payload = "") {
  std::string text(record.Space(), '\0');
  WriteRmaRecord(record, payload.data(), &text[0]);
  return text;
}

std::string Greeting(uint64_t rank = kClaimed, uint64_t ranks = kRanks) {
  RmaRecord record;
  record.kind = RmaKind::kHello;
  record.token = rank;
  record.bytes = ranks;
  return Bytes(record);
}

RmaRecord Of(RmaKind kind, uint64_t offset, uint64_t bytes, uint32_t region = 0) {
  RmaRecord record;
  record.kind = kind;
  record.region = region;
  record.offset = offset;
  record.bytes = bytes;
  return record;
}

std::string Put(uint64_t offset, uint64_t bytes, uint32_t region = 0) {
  return Bytes(Of(RmaKind::kPut, offset, bytes, region), std::string(bytes, 'x'));
}

// Announced only.
std::string Announced(RmaKind kind, uint64_t offset, uint64_t bytes) {
  RmaRecord record = Of(kind, offset, bytes);
  record.follows = true;
  return Bytes(record);
}

std::string Signal(uint64_t offset, uint32_t region = 0) {
  RmaRecord record = Of(RmaKind::kPut, 0, 0);
  record.has_signal = true;
  record.signal_region = region;
  record.signal_offset = offset;
  record.signal_add = ~uint64_t{0};
  return Bytes(record);
}

std::string Bye() { return Bytes(Of(RmaKind::kBye, 0, 0)); }
std::string Get(uint64_t offset, uint64_t bytes, uint32_t region = 0) {
  return Bytes(Of(RmaKind::kGet, offset, bytes, region));
}

struct Attack {
  const char* label;
  std::vector<std::string> messages;
  const char* told;
  bool ends_the_group = true;  // else its own connection only: it has not said who it is
};
void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.label; }

const uint64_t kHuge = ~uint64_t{0};
const uint64_t kGib = uint64_t{1} << 30;

std::vector<Attack> Attacks() {
  return {
      {"PutBeyond", {Greeting() + Put(kWindowBytes - 4, 8)}, "a put of 8 bytes at 4092 of region 0, which has 4096"},
      {"PutWraps", {Greeting() + Put(kHuge - 3, 8)}, "a put of 8 bytes at 18446744073709551612"},
      {"PutElsewhere", {Greeting() + Put(0, 8, 77)}, "region 77, which is not registered"},
      {"PutIsEnormous", {Greeting() + Announced(RmaKind::kPut, 0, kHuge)}, "more than 1 GiB"},
      {"PutOfMoreThanOneGib", {Greeting() + Announced(RmaKind::kPut, 0, kGib + 1)}, "more than 1 GiB"},
      {"PutOfOneGib", {Greeting() + Announced(RmaKind::kPut, 0, kGib)}, "a put of 1073741824 bytes at 0 of region 0"},
      {"PutIsLarger", {Greeting() + Announced(RmaKind::kPut, 0, 64), std::string(4096, 'x')}, ""},
      {"PutIsSmaller", {Greeting() + Announced(RmaKind::kPut, 0, 64), "x"}, "another size than was announced"},
      {"SignalBeyond", {Greeting() + Signal(kWindowBytes)}, "a signal of 8 bytes at 4096"},
      {"SignalAcrossTheEnd", {Greeting() + Signal(kWindowBytes - 4)}, "a signal of 8 bytes at 4092"},
      {"SignalAtAnOddAddress", {Greeting() + Signal(4)}, "a signal of 8 bytes at 4 of"},
      {"SignalElsewhere", {Greeting() + Signal(0, 99)}, "region 99"},
      {"GetBeyond", {Greeting() + Get(1, kWindowBytes)}, "a get of 4096 bytes"},
      {"GetWraps", {Greeting() + Get(kHuge, 2)}, "a get of 2 bytes"},
      {"GetElsewhere", {Greeting() + Get(0, 8, 4000000000u)}, "which no registration gave"},
      {"AnswerToNothing", {Greeting() + Bytes(Of(RmaKind::kGotten, 0, 8), "answered")}, "nobody has asked for"},
      {"LongAnswerToNothing", {Greeting() + Announced(RmaKind::kGotten, 0, 1 << 20)}, "nobody has asked for"},
      {"NoHello", {Put(0, 8)}, "", false},
      {"TwoHellos", {Greeting() + Greeting()}, "out of place"},
      {"AfterBye", {Greeting() + Bye() + Put(0, 8)}, "out of place"},
      {"RankBeyond", {Greeting(kRanks)}, "of another group", false},
      {"RankOfTheVictim", {Greeting(kVictim)}, "of another group", false},
      {"RankOfSomebodyElse", {Greeting(0)}, "a second peer says that it is rank 0", false},
      {"OtherNumberOfRanks", {Greeting(kClaimed, kRanks + 1)}, "of another group", false},
      {"UnknownKind", {Greeting() + Bytes(Of(static_cast<RmaKind>(200), 0, 0))}, "refused"},
      {"HalfARecord", {Greeting() + Put(0, 8).substr(0, 20)}, "refused"},
      {"PayloadCutOff", {Greeting() + Put(0, 2048).substr(0, 1000)}, "refused"},
      {"Garbage", {std::string(1000, '\xff')}, "", false},
  };
}

class RmaHostileTest : public ::testing::TestWithParam<Attack> {
 protected:
  // What every rank has registered: the window, then a word for signals of the ranks.
  void Register() {
    for (int rank = 0; rank < kRanks; ++rank) {
      windows_.push_back(std::make_unique<GuardedPages>(kWindowBytes));
      std::memset(windows_.back()->data(), 'w', kWindowBytes);
      Must(lab_->RegisterAt(rank, windows_.back()->data(), kWindowBytes));
    }
  }
  // Both may fail once the group has: its end closes the connection.
  void Send(void* comm, const std::string& message) {
    auto request = PostSend(net_.get(), comm, message.data(), message.size());
    if (!request.ok()) return;
    int done = 0;
    const Deadline deadline;
    while (done == 0 && net_->Test(*request, &done, nullptr) == ncclSuccess && deadline.Yield()) {
      (void)lab_->rma().Progress(lab_->rank(kVictim).contexts);
    }
  }

  // The group goes on without the attacker's connection.
  void ExpectAlone(void* comm) {
    const Deadline deadline;
    const char byte = 0;
    while (PostSend(net_.get(), comm, &byte, 1).ok() && deadline.Yield()) {
      (void)lab_->rma().Progress(lab_->rank(kVictim).contexts);
    }
    EXPECT_FALSE(deadline.Over()) << LogText();
    EXPECT_TRUE(LogHas(GetParam().told)) << LogText();
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ncclSuccess, lab_->rma().Progress(lab_->rank(rank).contexts)) << LogText();
      EXPECT_FALSE(lab_->HasFailed(rank));
    }
  }
  void ExpectTheEnd() {
    EXPECT_EQ(absl::OkStatus(), lab_->UntilFailed(kVictim));
    EXPECT_TRUE(LogHas(GetParam().told)) << LogText();
    EXPECT_NE(ncclSuccess, lab_->rma().Progress(lab_->rank(kVictim).contexts));
  }

  std::vector<std::unique_ptr<GuardedPages>> windows_;
  std::unique_ptr<NetClient> net_;
  std::unique_ptr<RmaLab> lab_;
};

TEST_P(RmaHostileTest, TouchesNothing) {
  lab_ = Must(RmaLab::Open({.threads = 2, .lanes = 2}, {.ranks = kRanks}));
  Register();
  net_ = Must(NetClient::Open(kPluginPath));
  void* context = nullptr;
  ASSERT_EQ(ncclSuccess, net_->Init(&context, 99, NCCL_NET_TRAFFIC_CLASS_UNDEF, &RecordLog, nullptr));
  auto handle = lab_->rank(kVictim).handle;
  Ends ends;
  ASSERT_EQ(ncclSuccess, PollEnds(net_.get(), {context, 0, handle.data(), nullptr}, &ends)) << LogText();
  for (const std::string& message : GetParam().messages) Send(ends.send, message);
  if (GetParam().ends_the_group) ExpectTheEnd();
  if (!GetParam().ends_the_group) ExpectAlone(ends.send);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kVictim) continue;
    EXPECT_EQ(std::string(kWindowBytes, 'w'), std::string(windows_[static_cast<size_t>(rank)]->data(), kWindowBytes));
  }
  EXPECT_EQ(ncclSuccess, net_->CloseSend(ends.send));
  EXPECT_EQ(ncclSuccess, net_->Finalize(context));
}

// Who has the ticket and never says which rank it is: made by hand, on one lane.
struct Stranger {
  const char* label;
  std::string says;  // after the hello
  bool resets = false;
};
void PrintTo(const Stranger& stranger, std::ostream* out) { *out << stranger.label; }

class RmaStrangerTest : public ::testing::TestWithParam<Stranger> {};

// What is reset before the victim has accepted it never reaches the group: then the next one does.
void ComeAndGo(RmaLab* lab, const Stranger& stranger, uint8_t number) {
  Hello hello;
  hello.connection_id[0] = number;
  hello.features = kFeatureEstablished;
  hello.lanes = 1;
  const int fd = DialByHand(lab->rank(kVictim).handle.data(), hello);
  ASSERT_EQ(static_cast<ssize_t>(stranger.says.size()),
            send(fd, stranger.says.data(), stranger.says.size(), MSG_NOSIGNAL));
  GoRound(lab->rank(kVictim).handle.data());
  EXPECT_EQ(absl::OkStatus(), lab->Progress());
  if (stranger.resets) {
    EXPECT_EQ(absl::OkStatus(), SetResetOnClose(fd));
  }
  close(fd);
  EXPECT_EQ(absl::OkStatus(), lab->Progress());
}

// Rank 0 puts to the victim, and the group goes on.
void ExpectAPutToArrive(RmaLab* lab) {
  RmaMemory* const memory = Must(lab->Register(kWindowBytes));
  RmaMemory* const signals = Must(lab->Register(64, NCCL_NET_MR_FLAG_FORCE_SO));
  std::memset(memory->at(0), 'p', kWindowBytes);
  void* request = nullptr;
  const RmaRange all = {memory->of(0), 0, memory->of(kVictim), 0, kWindowBytes, kVictim};
  RmaSignal signal;
  signal.region = signals->of(0);
  ASSERT_EQ(ncclSuccess, lab->rma().IputSignal(lab->rank(0).contexts, 0, all, signal, 0, &request)) << LogText();
  ASSERT_EQ(absl::OkStatus(), lab->Wait(0, request));
  EXPECT_EQ(absl::OkStatus(), lab->Until([&] { return signals->Word(kVictim, 0) == 1; }));
  EXPECT_EQ(std::string(kWindowBytes, 'p'), std::string(memory->at(kVictim), kWindowBytes));
  EXPECT_EQ(0, WarningCount()) << LogText();
}

TEST_P(RmaStrangerTest, CostsNothingButItself) {
  const auto lab = Must(RmaLab::Open({.threads = 2, .lanes = 2}, {.ranks = kRanks}));
  const Deadline deadline;
  for (uint8_t number = 0; !LogHas("of rank 1: a connection that had not said its rank was closed"); ++number) {
    ASSERT_TRUE(deadline.Yield()) << LogText();
    ComeAndGo(lab.get(), GetParam(), number);
  }
  ExpectAPutToArrive(lab.get());
}

// It has every answer, and dies before it says so: by an accept of the net table such an end would be reported.
TEST(RmaUnacceptedTest, ADeadStrangerCostsNothingButItself) {
  const auto lab = Must(RmaLab::Open({.threads = 2, .lanes = 2}, {.ranks = kRanks}));
  const char* const handle = lab->rank(kVictim).handle.data();
  uint8_t number = 0;
  for (const uint64_t heals : {uint64_t{0}, kFeatureHealHealth}) {
    for (const bool health_first : {true, false}) {
      Hello hello;
      hello.connection_id[0] = hello.connection_id[8] = ++number;
      hello.features = kFeatureHealth | kFeatureEstablished | heals;
      hello.lanes = 1;
      const int lane = DialByHand(handle, hello);
      hello.kind = HelloKind::kHealth;
      const int health = DialByHand(handle, hello);
      GoRound(handle);
      close(health_first ? health : lane);
      GoRound(handle);
      close(health_first ? lane : health);
      GoRound(handle);
      EXPECT_EQ(absl::OkStatus(), lab->Progress()) << LogText();
    }
  }
  ExpectAPutToArrive(lab.get());
}

// One after the other comes, and loses its lane, which heals; and then all of them their health sockets.
TEST(RmaUnacceptedTest, LanesOfStrangersShareALimitOfLines) {
  const auto lab = Must(RmaLab::Open({.threads = 2, .lanes = 2}, {.ranks = kRanks}));
  const char* const handle = lab->rank(kVictim).handle.data();
  const auto began = std::chrono::steady_clock::now();
  constexpr uint8_t kStrangers = 24;
  std::vector<int> healths;
  for (uint8_t number = 1; number <= kStrangers; ++number) {
    Hello hello;
    hello.connection_id[0] = hello.connection_id[8] = number;
    hello.features = kFeatureHealth | kFeatureEstablished | kFeatureHeal | kFeatureHealHealth;
    hello.lanes = 1;
    const int lane = DialByHand(handle, hello);
    hello.kind = HelloKind::kHealth;
    healths.push_back(DialByHand(handle, hello));
    const std::string word = Established();
    ASSERT_EQ(static_cast<ssize_t>(word.size()), send(lane, word.data(), word.size(), MSG_NOSIGNAL));
    GoRound(handle);
    EXPECT_EQ(absl::OkStatus(), lab->Progress());
    close(lane);
    for (int i = 0; i < 3; ++i) {
      GoRound(handle);
      EXPECT_EQ(absl::OkStatus(), lab->Progress());
    }
  }
  for (const int health : healths) close(health);
  GoRound(handle);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
  for (const char* const lost : {"is lost and will be resumed", "is lost and will be waited for"}) {
    const int lines = CountInLog(lost);
    EXPECT_GE(lines, 1) << LogText();
    EXPECT_LE(lines, seconds.count() + 2) << LogText();
  }
  ExpectAPutToArrive(lab.get());
}

// A message of lane 0, half of which has arrived.
std::string HalfAMessage() {
  const std::string message = ExpressMessage(Greeting() + Put(0, 1000));
  return Established() + message.substr(0, message.size() / 2);
}

const Stranger kStrangers[] = {
    {"Leaves", Established()},
    {"Resets", Established(), true},
    {"SaysNoTcpx", Established() + std::string(1000, '\xee')},
    {"LeavesWithinItsHello", HalfAMessage()},
    {"ResetsWithinItsHello", HalfAMessage(), true},
};

INSTANTIATE_TEST_SUITE_P(Every, RmaStrangerTest, ::testing::ValuesIn(kStrangers),
                         [](const auto& stranger) { return stranger.param.label; });

std::string Label(const testing::TestParamInfo<Attack>& attack) { return attack.param.label; }

INSTANTIATE_TEST_SUITE_P(Every, RmaHostileTest, ::testing::ValuesIn(Attacks()), Label);

}  // namespace
}  // namespace tcpx
