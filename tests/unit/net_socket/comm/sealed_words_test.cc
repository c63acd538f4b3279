// What a receiver says on lane 0 where that is sealed: its error neither overtakes the answer of a new socket nor goes
// into the middle of a credit, and a cipher that fails fails the connection, at once, and says nothing in the clear.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/runtime.h"
#include "tests/support/broken_cipher.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {

// Called for what is sent on the socket: how much of it is; below 0: all.
struct SendHook {
  std::atomic<int> fd{-1};
  std::function<ssize_t()> part;
};
SendHook g_hook;

}  // namespace tcpx

extern "C" ssize_t __real_send(int fd, const void* data, size_t bytes, int flags);
extern "C" ssize_t __wrap_send(int fd, const void* data, size_t bytes, int flags) {
  int hooked = fd;
  if (!tcpx::g_hook.fd.compare_exchange_strong(hooked, -1)) return __real_send(fd, data, bytes, flags);
  return __real_send(fd, data, static_cast<size_t>(tcpx::g_hook.part()), flags);
}

namespace tcpx {
namespace {

constexpr char kCipher[] = "the cipher failed";

Options Encrypting() {
  Options options;
  options.encrypt = true;
  return options;
}

Seals MakeSeals() {
  return Encryption({CipherSuite::kChaCha20Poly1305}).Make(CipherSuite::kChaCha20Poly1305, Key32(), Key32());
}

std::string ReadToTheEnd(int fd) {
  for (pollfd end{fd, POLLRDHUP, 0}; poll(&end, 1, 60000) == 1 && (end.revents & (POLLRDHUP | POLLHUP)) == 0;) {
  }
  return ReadAvailable(fd);
}

// "S": it waits.
char StateOf(pid_t thread) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/stat"));
  const std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

class SealedWordsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(runtime_.reactor.Start().ok()); }
  void TearDown() override {
    if (comm_ != nullptr) comm_->Close();
    comm_ = nullptr;
    for (OwnedFd& peer : peers_) peer = OwnedFd();  // Nothing lingers then.
    runtime_.reactor.RequestStop();
    runtime_.reactor.Join();
  }

  void Make(bool heals) {
    ConnectionSetup setup;
    setup.runtime = &runtime_;
    setup.max_receives = 2;
    setup.heals = heals;
    setup.lanes.resize(2);
    for (size_t lane = 0; lane < 2; ++lane) {
      TcpPair pair = MakeTcpPair();
      setup.lanes[lane].fd = std::move(pair.a);
      setup.lanes[lane].seals = MakeSeals();
      peers_[lane] = std::move(pair.b);
    }
    if (opener_ != nullptr) setup.lanes[0].seals.opener = std::move(opener_);
    fd_ = setup.lanes[0].fd.get();
    runtime_.reactor.RunSync([&] {
      if (heals) setup.health = runtime_.health.UseDialledInLoop(0, SocketAddress());
      comm_ = std::make_unique<ReceiveComm>(std::move(setup));
    });
  }

  absl::Status Post(Request** request = nullptr) {
    void* data[] = {text_};
    const size_t bytes[] = {sizeof(text_)};
    const int tags[] = {0};
    ReceiveArgs args;
    args.count = 1;
    args.data = data;
    args.bytes = bytes;
    args.tags = tags;
    Request* unused = nullptr;
    return comm_->Receive(args, request == nullptr ? &unused : request);
  }

  const Options options_ = Encrypting();
  Runtime runtime_{options_};
  OwnedFd peers_[2];
  std::unique_ptr<Opener> opener_;  // of lane 0; null: some other
  int fd_ = -1;
  std::unique_ptr<ReceiveComm> comm_;
  char text_[100];
};

class BrokenCipherTest : public SealedWordsTest, public ::testing::WithParamInterface<bool> {};

TEST_P(BrokenCipherTest, FailsTheConnection) {
  Make(GetParam());
  const BrokenCipher broken;
  (void)Post();
  const absl::Status again = Post();
  EXPECT_TRUE(comm_->failed());
  EXPECT_EQ(absl::StatusCode::kInternal, again.code());
  EXPECT_NE(std::string::npos, again.message().find(kCipher)) << again;
  EXPECT_EQ("", ReadToTheEnd(peers_[0].get()));
}

INSTANTIATE_TEST_SUITE_P(Lanes, BrokenCipherTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Heal" : "DontHeal"; });

// The peer has had no credit from the earlier socket: all go again, and can't.
TEST_F(SealedWordsTest, ANewSocketDoesNotGoOnWithABrokenCipher) {
  Make(true);
  ASSERT_TRUE(Post().ok());
  EXPECT_FALSE(comm_->failed());
  TcpPair pair = MakeTcpPair();
  SocketOffer offer;
  offer.fd = pair.a.get();
  offer.seals = std::make_shared<Seals>(MakeSeals());
  offer.done = [](uint64_t) {};
  const BrokenCipher broken;
  runtime_.reactor.RunSync(
      [&] { comm_->taker().With([&](SocketTaker* taker) { (void)taker->TakeSocket(0, &offer); }); });
  EXPECT_TRUE(comm_->failed());
  EXPECT_NE(std::string::npos, Post().message().find(kCipher));
}

// The other thread has seen no credit wait when this one's is sent in part.
TEST_F(SealedWordsTest, AnErrorDoesNotGoIntoTheMiddleOfACredit) {
  constexpr ssize_t kPart = 10;
  Make(false);
  std::thread fails;
  g_hook.part = [&] {
    std::atomic<pid_t> thread{0};
    fails = std::thread([&] {
      thread = gettid();
      comm_->health_user().With([](HealthUser* user) { user->PeerFailed("it", false); });
    });
    const Deadline deadline(20);
    int waits = 0;
    while (waits < 20 && deadline.Yield())
      waits = thread != 0 && comm_->failed() && StateOf(thread) == 'S' ? waits + 1 : 0;
    return kPart;
  };
  g_hook.fd = fd_;
  (void)Post();
  ASSERT_TRUE(fails.joinable());
  fails.join();
  EXPECT_TRUE(comm_->failed());
  EXPECT_EQ(static_cast<size_t>(kPart), ReadToTheEnd(peers_[0].get()).size());
}

// After a message it waits for the receive of the next one, and holds a little of that.
TEST_F(SealedWordsTest, AParkedLaneZeroGivesItsBufferBack) {
  const auto buffers = std::make_shared<SealBuffers>();
  PageBuffer only = buffers->Take();
  const char* const place = only.get();
  buffers->Give(std::move(only));
  const TrafficKeys keys{CipherSuite::kChaCha20Poly1305, Key32()};
  opener_ = std::make_unique<Opener>(keys, buffers);
  Make(false);
  Request* request = nullptr;
  ASSERT_TRUE(Post(&request).ok());
  Sealer peer(keys, std::make_shared<SealBuffers>());
  for (uint64_t sequence = 0; sequence < 2; ++sequence) {
    FrameHeader header;
    header.sequence = sequence;
    header.length = sizeof(text_);
    header.message_bytes = sizeof(text_);
    std::string frame(kHeaderBytes + sizeof(text_), 'x');
    EncodeHeader(header, &frame[0]);
    const iovec piece{&frame[0], frame.size()};
    ASSERT_EQ(static_cast<ssize_t>(frame.size()), peer.Send(peers_[0].get(), &piece, 1));
  }
  const Deadline deadline(60);
  for (bool done = false; !done && deadline.Yield();) {
    const absl::Status tested = comm_->Test(request, &done, nullptr);
    ASSERT_TRUE(tested.ok()) << tested;
  }
  EXPECT_EQ(place, buffers->Take().get());
}

// A lane that fails in a thread of the pool, while the reactor gives lane 0 another socket.
TEST_F(SealedWordsTest, AnErrorDoesNotOvertakeTheAnswerOfANewSocket) {
  runtime_.pool = std::make_unique<ProgressPool>();
  ASSERT_TRUE(runtime_.pool->Start(EngineChoice::kEpoll, 1, {}, 0).ok());
  Make(true);
  TcpPair pair = MakeTcpPair();
  SocketOffer offer;
  offer.fd = pair.a.get();
  offer.seals = std::make_shared<Seals>(MakeSeals());
  offer.done = [&](uint64_t) {
    EXPECT_TRUE(WriteAll(peers_[1].get(), std::string(200'000, 'x')));
    const Deadline deadline(60);
    while (!comm_->failed() && deadline.Yield()) {
    }
    pollfd too_early{pair.b.get(), POLLIN | POLLRDHUP, 0};
    EXPECT_EQ(0, poll(&too_early, 1, 200));
    EXPECT_TRUE(WriteAll(pair.a.get(), "answer"));
  };
  runtime_.reactor.RunSync(
      [&] { comm_->taker().With([&](SocketTaker* taker) { (void)taker->TakeSocket(0, &offer); }); });
  EXPECT_TRUE(comm_->failed());
  pair.a = OwnedFd();
  const Deadline deadline(60);
  std::string said;
  while (said.size() < 6 && deadline.Yield()) said += ReadAvailable(pair.b.get());
  EXPECT_EQ("answer", said.substr(0, 6));
}

}  // namespace
}  // namespace tcpx
