// NCCL_NET_OPTIONAL_RECV_COMPLETION in every mode: what is reported before its data is there, what is held, and what
// becomes of memory and errors meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

constexpr int kRequests = 32;  // NCCL_NET_MAX_REQUESTS
constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

class OptionalReceiveTest : public RulesTest {
 protected:
  void SetUp() override {
    RulesTest::SetUp();
    if (plugin_ != nullptr) MakePair(&pair_);
  }

  // What *request holds on entry when NCCL allows an early report.
  static void* Preset() { return reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION)); }

  // Null where the plugin has no room, or housekeeping is at the connection just now.
  void* TryReceive(char* data, size_t bytes, void* on_entry = Preset(), void* handle = nullptr) {
    void* to = data;
    int tag = 0;
    void* request = on_entry;
    EXPECT_EQ(ncclSuccess, net().Irecv(pair_.receive, 1, &to, &bytes, &tag, &handle, nullptr, &request)) << LogText();
    EXPECT_NE(Preset(), request);
    return request;
  }

  // Null when the plugin had no room for the whole time.
  void* Receive(char* data, size_t bytes, void* on_entry = Preset(), void* handle = nullptr) {
    const Deadline deadline;
    void* request = nullptr;
    do {
      request = TryReceive(data, bytes, on_entry, handle);
    } while (request == nullptr && deadline.Yield());
    return request;
  }

  void* Send(const char* data, size_t bytes) {
    auto request = PostSend(&net(), pair_.send, data, bytes);
    EXPECT_TRUE(request.ok()) << request.status();
    return request.ok() ? *request : nullptr;
  }

  bool Done(void* request) {
    int done = 0;
    int size = 0;
    EXPECT_EQ(ncclSuccess, net().Test(request, &done, &size)) << LogText();
    return done != 0;
  }

  // Tests until it is done, or the time is over; one that is held stays so however often it is tested.
  bool DoneInTime(void* request) {
    const Deadline deadline;
    while (!Done(request)) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

  // What test says that is no success, or a success when the request is done or the time is over.
  ncclResult_t ErrorOf(void* request, int* done) {
    const Deadline deadline;
    ncclResult_t result = ncclSuccess;
    while ((result = net().Test(request, done, nullptr)) == ncclSuccess && *done == 0 && deadline.Yield()) continue;
    return result;
  }

  // Drives both ends until all are done.
  void Finish(std::vector<void*> sends, std::vector<void*> receives) {
    Deadline deadline;
    while (!(sends.empty() && receives.empty()) && !HasFailure()) {
      if (!sends.empty() && Done(sends.front())) sends.erase(sends.begin());
      if (!receives.empty() && Done(receives.front())) receives.erase(receives.begin());
      ASSERT_TRUE(deadline.Yield()) << LogText();
    }
  }
};

TEST_P(OptionalReceiveTest, AYoungerReceiveEndsAnOlderOne) {
  const std::string out(2 * 1000, 'm');
  std::vector<char> in(2 * 1000, '?');
  void* first = Receive(&in[0], 1000);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Done(first)) << "the youngest was reported without its data";
  void* second = Receive(&in[1000], 1000);
  ASSERT_TRUE(DoneInTime(first));
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Done(second)) << "the youngest was reported without its data";
  Finish({Send(&out[0], 1000), Send(&out[1000], 1000)}, {second});
  EXPECT_EQ(out, std::string(in.begin(), in.end()));
}

TEST_P(OptionalReceiveTest, ItsOwnDataEndsTheYoungest) {
  const std::string out(300 * kKiB, 'm');
  std::vector<char> in(out.size(), '?');
  void* receive = Receive(in.data(), in.size());
  Finish({Send(out.data(), out.size())}, {receive});
  EXPECT_EQ(out, std::string(in.begin(), in.end()));
}

TEST_P(OptionalReceiveTest, OthersAreNotReportedEarly) {
  const std::string out(3 * 1000, 'm');
  std::vector<char> in(3 * 1000, '?');
  void* plain = Receive(&in[0], 1000, nullptr);
  // What the slot may hold from an earlier use.
  void* stale = Receive(&in[1000], 1000, reinterpret_cast<void*>(uintptr_t{0xdead0000}));
  void* optional = Receive(&in[2000], 1000);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Done(plain) || Done(stale) || Done(optional));
  Finish({Send(&out[0], 1000), Send(&out[1000], 1000), Send(&out[2000], 1000)}, {plain, stale, optional});
  EXPECT_EQ(out, std::string(in.begin(), in.end()));
}

// A short message may overtake a long one on another lane. Were it reported, NCCL would have nothing left to test, and
// with a caller that drives its own lanes the long one would never come.
TEST_P(OptionalReceiveTest, TheYoungestIsHeldForThoseReportedEarly) {
  const std::string out(4 * kMiB, 'm');
  for (const bool optional : {true, false}) {
    std::vector<char> in(out.size() + 100, '?');
    void* long_one = Receive(in.data(), out.size());
    void* short_one = Receive(in.data() + out.size(), 100, optional ? Preset() : nullptr);
    ASSERT_TRUE(DoneInTime(long_one));
    std::vector<void*> sends = {Send(out.data(), out.size()), Send(out.data(), 100)};
    Deadline deadline;
    bool done = false;
    while (!done && !HasFailure()) {
      done = Done(short_one);
      // After it: what came between the two would hide a report that was too early.
      if (done) {
        ASSERT_EQ(in.size(), static_cast<size_t>(std::count(in.begin(), in.end(), 'm')));
      }
      if (!sends.empty() && Done(sends.front())) sends.erase(sends.begin());
      ASSERT_TRUE(done || deadline.Yield()) << LogText();
    }
    Finish(sends, {});
  }
}

// The reverse: the short one waits on a lane that only the caller reads.
TEST_P(OptionalReceiveTest, TheYoungestIsHeldForAShortOneToo) {
  const std::string out(4 * kMiB, 'm');
  std::vector<char> in(out.size() + 100, '?');
  void* short_one = Receive(in.data() + out.size(), 100);
  void* long_one = Receive(in.data(), out.size());
  ASSERT_TRUE(DoneInTime(short_one));
  std::vector<void*> sends = {Send(out.data(), 100), Send(out.data(), out.size())};
  // Threads may land the long one meanwhile. With one lane, or where lanes heal, a send may wait until it is read.
  for (int i = 0; GetParam().threads > 0 && i < 1000; ++i) {
    if (!sends.empty() && Done(sends.front())) sends.erase(sends.begin());
    sched_yield();
  }
  Finish(sends, {long_one});
  EXPECT_EQ(in.size(), static_cast<size_t>(std::count(in.begin(), in.end(), 'm')));
}

TEST_P(OptionalReceiveTest, ASlotStaysTakenUntilTheDataIsThere) {
  const std::string out(kRequests * 100, 'm');
  std::vector<char> in((kRequests + 1) * 100, '?');
  std::vector<void*> receives, sends;
  for (size_t i = 0; i < kRequests; ++i) receives.push_back(Receive(&in[i * 100], 100));
  for (size_t i = 0; i + 1 < kRequests; ++i) ASSERT_TRUE(DoneInTime(receives[i]));
  EXPECT_EQ(nullptr, TryReceive(&in[kRequests * 100], 100)) << "32 buffers wait for data, and a 33rd was taken";
  EXPECT_FALSE(Done(receives.back()));
  // All but the youngest's: their slots come back while it is still held.
  for (size_t i = 0; i + 1 < kRequests; ++i) sends.push_back(Send(&out[i * 100], 100));
  Deadline deadline;
  void* another = nullptr;
  while (another == nullptr && deadline.Yield() && !HasFailure()) {
    if (!sends.empty() && Done(sends.front())) sends.erase(sends.begin());
    EXPECT_FALSE(Done(receives.back()));
    another = TryReceive(&in[kRequests * 100], 100);
  }
  ASSERT_NE(nullptr, another) << "no slot came back";
  for (size_t i = 0; i < 2; ++i) sends.push_back(Send(&out[i * 100], 100));
  Finish(sends, {receives.back(), another});
  EXPECT_EQ(in.size(), static_cast<size_t>(std::count(in.begin(), in.end(), 'm')));
  receives.clear();
  for (size_t i = 0; i < kRequests; ++i) {
    receives.push_back(Receive(&in[i * 100], 100));
    ASSERT_NE(nullptr, receives.back()) << "slot " << i << " was not given back";
  }
}

// Slots come back one by one while receives go on without a pause.
TEST_P(OptionalReceiveTest, AStreamWithoutAPause) {
  constexpr int kMessages = 500;
  constexpr size_t kBytes = 70 * kKiB;  // above the express size
  const std::string out(kBytes, 'm');
  std::vector<std::vector<char>> in(kRequests, std::vector<char>(kBytes));
  std::vector<void*> receives, sends;
  int sent = 0, posted = 0;
  Deadline deadline;
  while ((posted < kMessages || !receives.empty() || !sends.empty()) && !HasFailure()) {
    if (posted < kMessages) {
      if (void* request = TryReceive(in[static_cast<size_t>(posted) % in.size()].data(), kBytes)) {
        receives.push_back(request);
        ++posted;
        deadline.Restart();
      }
    }
    if (sent < posted && sends.size() < 8) {
      sends.push_back(Send(out.data(), kBytes));
      ++sent;
    }
    if (!receives.empty() && Done(receives.front())) receives.erase(receives.begin());
    if (!sends.empty() && Done(sends.front())) sends.erase(sends.begin());
    ASSERT_TRUE(deadline.Yield()) << posted << " posted, " << receives.size() << " open\n" << LogText();
  }
  for (const auto& buffer : in) EXPECT_EQ(kBytes, static_cast<size_t>(std::count(buffer.begin(), buffer.end(), 'm')));
}

TEST_P(OptionalReceiveTest, AFailureIsSeenByARequestThatIsStillTested) {
  char in[4][100];
  void* first = Receive(in[0], 100);
  void* second = Receive(in[1], 100);
  void* third = Receive(in[2], 100);
  ASSERT_TRUE(DoneInTime(first));
  ASSERT_TRUE(plugin_->Close({pair_.send, nullptr}).ok());
  int done = 0;
  EXPECT_EQ(ncclRemoteError, ErrorOf(third, &done));
  EXPECT_EQ(0, done);
  // One that could have been reported early a moment ago now says what happened.
  EXPECT_EQ(ncclRemoteError, ErrorOf(second, &done));
  EXPECT_EQ(0, done);
  void* data = in[3];
  size_t bytes = 100;
  int tag = 0;
  void* request = nullptr;
  const Deadline deadline;
  ncclResult_t result = ncclSuccess;
  do {
    request = Preset();
    result = net().Irecv(pair_.receive, 1, &data, &bytes, &tag, nullptr, nullptr, &request);
  } while (result == ncclSuccess && request == nullptr && deadline.Yield());
  EXPECT_EQ(ncclRemoteError, result);
  EXPECT_EQ(nullptr, request);
}

// NCCL frees the buffer after deregMr: a receive that was reported early is still in flight.
class OptionalDeregTest : public OptionalReceiveTest {
 protected:
  // Deregisters a receive that was reported early, then lets the peer go on. `sent_before`: its message is in flight.
  // What the next test of the youngest receive answers.
  ncclResult_t DeregisterEarly(bool sent_before) {
    constexpr size_t kBytes = 16 * kMiB;
    const std::string out(kBytes, 'm');
    std::vector<char> in(kBytes, '?'), other(100);
    void* handle = nullptr;
    EXPECT_EQ(ncclSuccess, net().RegMr(pair_.receive, in.data(), in.size(), NCCL_PTR_HOST, &handle));
    void* early = Receive(in.data(), in.size(), Preset(), handle);
    void* youngest = Receive(other.data(), other.size());
    void* send = sent_before ? Send(out.data(), out.size()) : nullptr;
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(Done(youngest));
    EXPECT_TRUE(DoneInTime(early));
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, handle));
    std::memset(in.data(), '!', in.size());
    // Null where the reset has come first.
    if (!sent_before) (void)net().Isend(pair_.send, const_cast<char*>(out.data()), kBytes, 0, nullptr, nullptr, &send);
    int done = 0;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < 200; ++i) {
      if (send != nullptr && (net().Test(send, &done, nullptr) != ncclSuccess || done != 0)) send = nullptr;
      const ncclResult_t tested = net().Test(youngest, &done, nullptr);
      if (tested != ncclSuccess) result = tested;
      EXPECT_EQ(0, done);
      sched_yield();
    }
    EXPECT_EQ(in.size(), static_cast<size_t>(std::count(in.begin(), in.end(), '!')));
    for (const std::string& line : LogLines(NCCL_LOG_WARN)) {
      EXPECT_EQ(std::string::npos, line.find(" receive device ")) << line;
    }
    // `out` goes out of scope: the sender must have let go too.
    EXPECT_TRUE(plugin_->Close({pair_.send, nullptr}).ok());
    return result;
  }
};

TEST_P(OptionalDeregTest, NothingComesAfterIt) { EXPECT_EQ(ncclRemoteError, DeregisterEarly(false)); }

// The message may be there as a whole by then: then nothing is in flight, and the connection stays.
TEST_P(OptionalDeregTest, TheRestOfAMessageDoesNotCome) {
  const ncclResult_t result = DeregisterEarly(true);
  EXPECT_TRUE(result == ncclRemoteError || result == ncclSuccess) << result;
}

INSTANTIATE_TEST_SUITE_P(EveryMode, OptionalDeregTest, ::testing::ValuesIn(AllModes()), ModeName);

// A receive that was reported early and has landed since is not in flight.
TEST_P(OptionalReceiveTest, DeregAfterTheDataDisturbsNothing) {
  const std::string out(200, 'm');
  std::vector<char> in(300, '?');
  void* handle = nullptr;
  ASSERT_EQ(ncclSuccess, net().RegMr(pair_.receive, in.data(), 100, NCCL_PTR_HOST, &handle));
  void* early = Receive(&in[0], 100, Preset(), handle);
  void* youngest = Receive(&in[100], 100);
  ASSERT_TRUE(DoneInTime(early));
  Finish({Send(&out[0], 100), Send(&out[100], 100)}, {youngest});
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.receive, handle));
  void* next = Receive(&in[200], 100);
  Finish({Send(&out[0], 100)}, {next});
  EXPECT_EQ('m', in[299]);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, OptionalReceiveTest, ::testing::ValuesIn(AllModes()), ModeName);

// v9 brought the preset (NCCL 2.24.3); before, the slot's old contents mean nothing.
class OptionalVersionTest : public OptionalReceiveTest {};

TEST_P(OptionalVersionTest, FromNineOn) {
  char in[200];
  void* first = Receive(&in[0], 100);
  void* second = Receive(&in[100], 100);
  if (net().version() >= 9) {
    EXPECT_TRUE(DoneInTime(first));
  } else {
    for (int i = 0; i < 100; ++i) ASSERT_FALSE(Done(first));
  }
  EXPECT_FALSE(Done(second));
}

std::vector<Mode> EveryVersion() {
  std::vector<Mode> all(7);
  for (int version = 6; version <= 12; ++version) all[static_cast<size_t>(version - 6)].version = version;
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, OptionalVersionTest, ::testing::ValuesIn(EveryVersion()), ModeName);

}  // namespace
}  // namespace tcpx
