// With TCPX_ENCRYPT no connection uses a socket that has no keys, however it got it.
#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/send_comm.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

constexpr char kBare[] = "has no keys";

Options Encrypting() {
  Options options;
  options.encrypt = true;
  return options;
}

enum class Has { kBoth, kNothing, kSealer, kOpener };

Seals MakeSeals(Has has) {
  const Encryption encryption({CipherSuite::kChaCha20Poly1305});
  Seals seals = encryption.Make(CipherSuite::kChaCha20Poly1305, Key32(), Key32());
  if (has != Has::kBoth && has != Has::kSealer) seals.sealer = nullptr;
  if (has != Has::kBoth && has != Has::kOpener) seals.opener = nullptr;
  return seals;
}

// All that comes until the end of the stream.
std::string ReadToTheEnd(int fd) {
  std::string all;
  for (pollfd end{fd, POLLRDHUP, 0}; poll(&end, 1, 60000) == 1 && (end.revents & (POLLRDHUP | POLLHUP)) == 0;) {
  }
  all += ReadAvailable(fd);
  return all;
}

class BareSocketsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(runtime_.reactor.Start().ok()); }
  void TearDown() override {
    for (OwnedFd& peer : peers_) peer = OwnedFd();  // Nothing lingers then.
    runtime_.reactor.RequestStop();
    runtime_.reactor.Join();
  }

  // Two lanes; the second has what `has` says.
  ConnectionSetup Setup(Has has) {
    ConnectionSetup setup;
    setup.runtime = &runtime_;
    setup.max_receives = 2;
    setup.lanes.resize(2);
    for (size_t lane = 0; lane < 2; ++lane) {
      TcpPair pair = MakeTcpPair();
      setup.lanes[lane].fd = std::move(pair.a);
      setup.lanes[lane].seals = MakeSeals(lane == 0 ? Has::kBoth : has);
      peers_[lane] = std::move(pair.b);
    }
    return setup;
  }
  template <typename End>
  std::unique_ptr<End> Make(ConnectionSetup setup) {
    std::unique_ptr<End> comm;
    runtime_.reactor.RunSync([&] { comm = std::make_unique<End>(std::move(setup)); });
    return comm;
  }
  void ExpectThatNothingWasSaid() {
    for (const OwnedFd& peer : peers_) EXPECT_EQ("", ReadToTheEnd(peer.get()));
  }

  const Options options_ = Encrypting();
  Runtime runtime_{options_};
  OwnedFd peers_[2];
};

TEST_F(BareSocketsTest, ASenderIsNotMadeOfThem) {
  for (const Has has : {Has::kNothing, Has::kSealer, Has::kOpener}) {
    const auto comm = Make<SendComm>(Setup(has));
    char text[] = "secret";
    SendArgs args;
    args.data = text;
    args.bytes = sizeof(text);
    Request* request = nullptr;
    const absl::Status sent = comm->Send(args, &request);
    EXPECT_EQ(absl::StatusCode::kInternal, sent.code());
    EXPECT_NE(std::string::npos, std::string(sent.message()).find(kBare)) << sent;
    ExpectThatNothingWasSaid();
    comm->Close();
  }
  const auto comm = Make<SendComm>(Setup(Has::kBoth));
  EXPECT_FALSE(comm->failed());
  comm->Close();
}

TEST_F(BareSocketsTest, AReceiverIsNotMadeOfThem) {
  for (const Has has : {Has::kNothing, Has::kSealer, Has::kOpener}) {
    const auto comm = Make<ReceiveComm>(Setup(has));
    char text[100];
    void* data[] = {text};
    const size_t bytes[] = {sizeof(text)};
    ReceiveArgs args;
    args.count = 1;
    args.data = data;
    args.bytes = bytes;
    Request* request = nullptr;
    const absl::Status posted = comm->Receive(args, &request);
    EXPECT_NE(std::string::npos, std::string(posted.message()).find(kBare)) << posted;
    // What it says of its failure goes by lane 0, which has keys.
    EXPECT_EQ(std::string::npos, ReadToTheEnd(peers_[0].get()).find("keys"));
    EXPECT_EQ("", ReadToTheEnd(peers_[1].get()));
    comm->Close();
  }
}

// The receiver speaks on lane 0.
TEST_F(BareSocketsTest, AReceiverSaysNothingOnABareLaneZero) {
  ConnectionSetup setup = Setup(Has::kBoth);
  setup.lanes[0].seals = Seals();
  const auto comm = Make<ReceiveComm>(std::move(setup));
  EXPECT_TRUE(comm->failed());
  ExpectThatNothingWasSaid();
  comm->Close();
}

TEST_F(BareSocketsTest, ALaneTakesNone) {
  for (const Has has : {Has::kBoth, Has::kNothing, Has::kSealer, Has::kOpener}) {
    for (const int lane : {0, 1}) {
      ConnectionSetup setup = Setup(Has::kBoth);
      setup.heals = true;
      runtime_.reactor.RunSync([&] { setup.health = runtime_.health.UseDialledInLoop(0, SocketAddress()); });
      const auto comm = Make<SendComm>(std::move(setup));
      TcpPair pair = MakeTcpPair();
      SocketOffer offer;
      offer.fd = pair.a.get();
      if (has != Has::kNothing) offer.seals = std::make_shared<Seals>(MakeSeals(has));
      bool done = false;
      offer.done = [&done](uint64_t) { done = true; };
      Handover how = Handover::kBusy;
      runtime_.reactor.RunSync(
          [&] { comm->taker().With([&](SocketTaker* taker) { how = taker->TakeSocket(lane, &offer); }); });
      EXPECT_EQ(has == Has::kBoth, how == Handover::kTaken);
      EXPECT_EQ(has == Has::kBoth, done);
      EXPECT_EQ(has != Has::kBoth, comm->failed());
      if (has != Has::kBoth) ExpectThatNothingWasSaid();
      EXPECT_EQ("", ReadAvailable(pair.b.get()));
      comm->Close();
    }
  }
}

}  // namespace
}  // namespace tcpx
