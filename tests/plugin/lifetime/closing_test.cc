// A send reported done is delivered, even when its process closes and ends right after it and the receiver is slow.
// The trap: closing a socket with unread data resets it and destroys what the peer has not read yet, and an ending
// process closes everything.
#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/clock.h"
#include "net_socket/message/wire.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

// Where lanes heal, messages of 300000 bytes are done when they are acknowledged, else when the socket has them. Those
// of kCopiedPayloadBytesMax and less, which TCPX_TEST_MESSAGE_BYTES asks for, are done when they are copied.
Stream::Shape MessageShape() {
  const char* bytes = getenv("TCPX_TEST_MESSAGE_BYTES");
  Stream::Shape shape = {300000, 8, 40, true};
  if (bytes != nullptr) shape.message_bytes = strtoul(bytes, nullptr, 10);
  return shape;
}

const Stream::Shape kShape = MessageShape();

enum class End { kFinalizeAndExit, kFinalizeAndQuickExit, kExit, kUnload, kUnloadAndExit };

struct Way {
  const char* name;
  int version;
  End end;
};

constexpr Way kWays[] = {
    {"v12FinalizeExit", 12, End::kFinalizeAndExit},
    {"v12FinalizeQuickExit", 12, End::kFinalizeAndQuickExit},
    {"v12Exit", 12, End::kExit},
    {"v11FinalizeExit", 11, End::kFinalizeAndExit},
    {"v10Exit", 10, End::kExit},
    {"v10Unload", 10, End::kUnload},
    {"v6UnloadExit", 6, End::kUnloadAndExit},
};

// For the names and messages of GoogleTest.
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

[[noreturn]] void Leave(Rank* rank, End end) {
  switch (end) {
    case End::kFinalizeAndExit:
      rank->Finalize();
      exit(0);
    case End::kFinalizeAndQuickExit:
      rank->Finalize();
      QuickExit();
    case End::kExit:
      exit(0);
    case End::kUnload:
      rank->Unload();
      _exit(0);
    case End::kUnloadAndExit:
      rank->Unload();
      exit(0);
  }
  abort();
}

// Sends, with the other direction's data left unread and unasked for, and is gone.
void SendAndVanish(Control& peer, const Way& way) {
  auto* rank = new Rank(way.version);  // Not destroyed by exit.
  const Ends ends = rank->Connect(peer);
  Stream send(&rank->net(), Stream::Way::kSend, ends.send, kShape);
  Stream recv(&rank->net(), Stream::Way::kReceive, ends.receive, {kShape.message_bytes, 4, 4, true});
  recv.Step();
  send.Finish();
  rank->CloseSend(ends.send);
  recv.Deregister();
  rank->CloseReceive(ends.receive);
  TCPX_REQUIRE(WarningCount() == 0, LogText());
  Leave(rank, way.end);
}

// `before` the first message nothing is read, and then slowly: by the clock, as being late is all that it does. Its
// own sends may fail: nobody wants them.
void ReceiveSlowly(Control& peer, absl::Duration before) {
  Rank rank;
  const Ends ends = rank.Connect(peer);
  Stream send(&rank.net(), Stream::Way::kSend, ends.send, kShape);
  Stream recv(&rank.net(), Stream::Way::kReceive, ends.receive, kShape);
  send.Step();
  absl::SleepFor(before);
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  for (int64_t slept_at = 0; !recv.complete();) {
    TCPX_REQUIRE(recv.Step() == ncclSuccess, "after ", recv.finished(), " of ", kShape.count, " messages; ", LogText());
    TCPX_REQUIRE(absl::Now() < deadline, "after ", recv.finished(), " of ", kShape.count, " messages");
    if (recv.finished() == slept_at) continue;
    slept_at = recv.finished();
    absl::SleepFor(absl::Milliseconds(5));
    send.Step();
  }
  send.Deregister();
  recv.Deregister();
  rank.Close(ends);
  rank.Finalize();
}

class ClosingTest : public ::testing::TestWithParam<std::tuple<Mode, Way>> {
 protected:
  void SetUp() override {
    const Mode& mode = std::get<0>(GetParam());
    const std::string missing = mode.ReasonToSkip();
    if (!missing.empty()) GTEST_SKIP() << missing;
    mode.Apply();
    // The other direction's sends fail when their receiver closes: that ends nothing but themselves here.
    setenv("TCPX_SPREAD_ERRORS", "0", 1);
    setenv("NCCL_SOCKET_SNDBUF", "65536", 1);
    // A few segments of the loopback device, whose windows else open by the persist timer only (RFC 9293, 3.8.6); no
    // more than net.core.rmem_max is by default.
    setenv("NCCL_SOCKET_RCVBUF", "212992", 1);
  }
};

TEST_P(ClosingTest, PeerGetsEveryByte) {
  const Way& way = std::get<1>(GetParam());
  EXPECT_EQ("", RunTogether([&way](Control& peer) { SendAndVanish(peer, way); },
                            [](Control& peer) { ReceiveSlowly(peer, absl::Milliseconds(100)); }));
}

std::string WayName(const ::testing::TestParamInfo<std::tuple<Mode, Way>>& info) {
  return std::string(std::get<1>(info.param).name) + "_" + std::get<0>(info.param).ShortName();
}

INSTANTIATE_TEST_SUITE_P(Ways, ClosingTest,
                         ::testing::Combine(::testing::ValuesIn(AllModes({1, 4})), ::testing::ValuesIn(kWays)),
                         WayName);

// With buffers as large as the kernel likes, all is done at once and the last megabytes travel without the process's
// knowledge; the receiver sleeps for longer than sockets linger.
class PatientClosingTest : public ClosingTest {
 protected:
  void SetUp() override {
    ClosingTest::SetUp();
    unsetenv("NCCL_SOCKET_SNDBUF");
    unsetenv("NCCL_SOCKET_RCVBUF");
    setenv("TCPX_LINGER", "0.2", 1);
  }
};

TEST_P(PatientClosingTest, PeerGetsEveryByteAfterTheLinger) {
  const Way& way = std::get<1>(GetParam());
  EXPECT_EQ("", RunTogether([&way](Control& peer) { SendAndVanish(peer, way); },
                            [](Control& peer) { ReceiveSlowly(peer, absl::Milliseconds(600)); }));
}

INSTANTIATE_TEST_SUITE_P(Ways, PatientClosingTest,
                         ::testing::Combine(::testing::ValuesIn(AllModes({4})), ::testing::Values(kWays[0], kWays[4])),
                         WayName);

// A receiver made by hand, which has something to say on the lane while it is slow to read.
class TalkativeReceiver {
 public:
  explicit TalkativeReceiver(Control& peer) : acceptor_(true, 262144) {
    peer.Send(acceptor_.HandleBytes().data(), kHandleBytesMax);
    lane_ = acceptor_.Accept();
    HearHello(lane_);
    SayByHand(lane_, Encoded(Answer()));
  }

  void Read(char* out, size_t bytes) {
    while (bytes > 0) {
      const ssize_t got = recv(lane_, out, std::min<size_t>(bytes, 65536), 0);
      TCPX_REQUIRE(got > 0, "the stream broke after ", payload_,
                   " bytes of messages: ", got == 0 ? "end" : strerror(errno));
      out += got;
      bytes -= static_cast<size_t>(got);
    }
  }

  // Reads a message of one chunk, then speaks.
  void ReadMessage() {
    char header[kHeaderBytes];
    FrameHeader frame;
    Read(header, sizeof(header));
    TCPX_REQUIRE(DecodeHeader(header, &frame) == nullptr && frame.kind == FrameKind::kChunk);
    std::vector<char> rest(frame.length + frame.padding);
    Read(rest.data(), rest.size());
    payload_ += frame.length;
    Speak();
  }

  bool AtEnd() {
    char byte;
    return recv(lane_, &byte, 1, 0) == 0;
  }
  size_t payload() const { return payload_; }

 private:
  // A record that the other side may skip. It may have closed: that the kernel tells us so is what it must not do.
  void Speak() {
    FrameHeader record;
    record.kind = static_cast<FrameKind>(200);
    record.length = 1000;
    char bytes[kHeaderBytes + 1000] = {};
    EncodeHeader(record, bytes);
    TCPX_REQUIRE(send(lane_, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes), strerror(errno));
  }

  const FakeAcceptor acceptor_;
  int lane_ = -1;
  size_t payload_ = 0;
};

class TalkingPeerTest : public ClosingTest {};

// Without the linger the first record after the close resets the connection, and what the kernel had still to send is
// gone.
TEST_P(TalkingPeerTest, PeerThatStillTalksGetsEveryByte) {
  const Way& way = std::get<1>(GetParam());
  unsetenv("NCCL_SOCKET_SNDBUF");
  setenv("TCPX_LINGER", "60", 1);  // The reader may be slow.
  const auto send_and_vanish = [&way](Control& peer) {
    auto* rank = new Rank(way.version);
    char handle[kHandleBytesMax];
    peer.Receive(handle, sizeof(handle));
    Ends ends;
    TCPX_REQUIRE(rank->Poll(handle, nullptr, &ends) == ncclSuccess, LogText());
    Stream send(&rank->net(), Stream::Way::kSend, ends.send, kShape);
    send.Finish();
    rank->Close(ends);
    TCPX_REQUIRE(WarningCount() == 0, LogText());
    Leave(rank, way.end);
  };
  const auto read_slowly = [](Control& peer) {
    TalkativeReceiver receiver(peer);
    for (int64_t message = 0; message < kShape.count; ++message) {
      receiver.ReadMessage();
      absl::SleepFor(absl::Milliseconds(10));
    }
    TCPX_REQUIRE(receiver.AtEnd());
    TCPX_REQUIRE(receiver.payload() == static_cast<size_t>(kShape.count) * kShape.message_bytes);
  };
  EXPECT_EQ("", RunTogether(send_and_vanish, read_slowly));
}

INSTANTIATE_TEST_SUITE_P(Ways, TalkingPeerTest,
                         ::testing::Combine(::testing::Values(AllModes({1, 4})[0]), ::testing::ValuesIn(kWays)),
                         WayName);

}  // namespace
}  // namespace tcpx
