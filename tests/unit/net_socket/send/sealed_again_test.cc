// What is sent again over another socket is sealed again, under that one's keys: nothing that was sealed before is ever
// said twice, and the receiver gets the stream.
#include <errno.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/opener.h"
#include "net_socket/seal/sealer.h"
#include "net_socket/send/send_stream.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

constexpr size_t kWindow = 16;
constexpr uint64_t kRecordsOfAKey = 3;  // so that keys change within a socket too

struct Message {
  SendRequest request;
  std::string payload;
};

// Both ends of a lane whose socket dies again and again.
class SealedLane {
 public:
  SealedLane(CipherSuite suite, uint64_t seed) : suite_(suite), rng_(seed) {
    stream_.SealBy(std::move(NextSeals()->sealer));
  }

  // One frame, whose sender may write over it as soon as it hears that it was copied, or acknowledged.
  void Send() {
    auto message = std::make_unique<Message>();
    message->payload.resize(rng_.Between(1, rng_.OneIn(4) ? 12'000 : 400));
    for (char& byte : message->payload) byte = static_cast<char>(rng_.Next());
    message->request.left.store(message->payload.size());
    std::string header(kHeaderBytes, static_cast<char>(messages_.size()));
    held().Begin(header.data(), {message->payload.data(), message->payload.size(), 0}, &message->request);
    std::string frame = header + message->payload;
    expected_ += frame;
    for (size_t sent = 0; sent < frame.size();) {
      iovec rest{&frame[sent], frame.size() - sent};
      const ssize_t taken = stream_.Send(&rest, 1);
      if (taken < 0) {
        ASSERT_EQ(EAGAIN, errno);
        TakeIn(ReadAvailable(pair_.b.get()));
        continue;
      }
      held().Sent(static_cast<size_t>(taken));
      sent += static_cast<size_t>(taken);
    }
    held().Finish(rng_.OneIn(2));
    messages_.push_back(std::move(message));
    Scribble();
  }
  bool full() { return held().room() == 0; }

  // The receiver has got any part of what is in flight, and then another socket.
  void LoseSocket() {
    TakeIn(ReadAvailable(pair_.b.get(), rng_.Between(0, 20'000)));
    held().Acked(-1);
    SocketOffer offer;
    TcpPair next = MakeTcpPair(1 << 20);
    offer.fd = next.a.get();
    offer.position = received_.size();
    offer.seals = NextSeals();
    offer.done = [](uint64_t) {};
    ASSERT_TRUE(stream_.Replace(std::move(offer)).ok());
    pair_.b = std::move(next.b);
    Scribble();
    for (;;) {
      const int err = stream_.SendAgain();
      if (err == 0) break;
      ASSERT_EQ(EAGAIN, err);
      TakeIn(ReadAvailable(pair_.b.get()));
    }
  }
  void TakeAll() {
    while (received_.size() < expected_.size()) TakeIn(ReadAvailable(pair_.b.get()));
    held().PeerTook(received_.size());
    Scribble();
  }
  void Check() const {
    EXPECT_TRUE(expected_ == received_);
    EXPECT_EQ(0u, twice_);
  }

 private:
  HeldFrames& held() { return *stream_.held(); }

  // The keys of another socket.
  std::shared_ptr<Seals> NextSeals() {
    TrafficKeys keys;
    keys.suite = suite_;
    for (size_t i = 0; i < Key32::size(); ++i) keys.secret.data()[i] = static_cast<uint8_t>(rng_.Next());
    keys.records_per_key = kRecordsOfAKey;
    auto seals = std::make_shared<Seals>();
    seals->sealer = std::make_unique<Sealer>(keys, buffers_);
    opener_ = std::make_unique<Opener>(keys, buffers_);
    last_.clear();
    return seals;
  }

  void TakeIn(const std::string& sealed) {
    EXPECT_TRUE(opener_->OpenAll(sealed.data(), sealed.size(), &received_));
    // Windows may lie across two reads.
    const std::string all = last_ + sealed;
    for (size_t at = 0; at + kWindow <= all.size(); ++at)
      twice_ += seen_.insert(all.substr(at, kWindow)).second ? 0 : 1;
    last_ = all.size() < kWindow ? all : all.substr(all.size() - kWindow + 1);
  }

  void Scribble() {
    for (auto& message : messages_) {
      if (message->request.done()) message->payload.assign(message->payload.size(), '!');
    }
  }

  const CipherSuite suite_;
  Rng rng_;
  const std::shared_ptr<SealBuffers> buffers_ = std::make_shared<SealBuffers>();
  std::vector<std::unique_ptr<Message>> messages_;
  std::string expected_;
  std::string received_;
  std::unordered_set<std::string> seen_;
  size_t twice_ = 0;
  std::string last_;  // of this socket
  FakeOwner owner_;
  TcpPair pair_ = MakeTcpPair(1 << 20);
  SendStream stream_{&owner_, {pair_.a.get(), 0, 16, 64 << 10, true}};
  std::unique_ptr<Opener> opener_;
};

TEST(SealedAgainTest, EverySocketHasItsOwnKeys) {
  std::string by;
  const uint64_t seed = TestSeed();
  for (const CipherSuite suite : FindSuites(&by)) {
    SCOPED_TRACE(SuiteName(suite));
    SealedLane lane(suite, seed);
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 5 && !lane.full(); ++i) ASSERT_NO_FATAL_FAILURE(lane.Send());
      ASSERT_NO_FATAL_FAILURE(lane.LoseSocket());
      if (round % 3 == 0 || lane.full()) lane.TakeAll();
    }
    lane.TakeAll();
    lane.Check();
  }
}

// A part of a record is with the kernel, and the peer has all of that by an earlier socket: what is left of the record
// must not be counted as what comes after it.
TEST(SealedAgainTest, NothingIsSentForWhatThePeerHas) {
  TrafficKeys keys;
  std::string by;
  keys.suite = FindSuites(&by).front();
  const TcpPair pair = MakeTcpPair(4096);
  constexpr size_t kFrames = 16;
  FakeOwner owner;
  SendStream stream(&owner, {pair.a.get(), 0, kFrames, 0, true});
  stream.SealBy(std::make_unique<Sealer>(keys, std::make_shared<SealBuffers>()));
  HeldFrames& held = *stream.held();
  const std::string payload(60'000, 'x');
  const std::string header(kHeaderBytes, 'h');
  for (size_t i = 0; i < kFrames; ++i) {
    held.Begin(header.data(), {payload.data(), payload.size(), 0}, nullptr);
    held.Sent(kHeaderBytes + payload.size());
    held.Finish(false);
  }
  ASSERT_TRUE(held.Rewind(0));
  ASSERT_EQ(stream.SendAgain(), EAGAIN);
  ASSERT_TRUE(stream.sealer()->pending());
  const uint64_t taken = kFrames * (kHeaderBytes + payload.size()) - 1000;
  stream.PeerTook(taken);
  for (int i = 0; i < 100; ++i) {
    (void)ReadAvailable(pair.b.get());
    EXPECT_EQ(stream.SendAgain(), EAGAIN);
  }
  EXPECT_EQ(held.cursor(), taken);
}

TEST(SealedAgainTest, NothingIsSentInTheClearThatMustNotBe) {
  const std::string header(kHeaderBytes, 'h');
  const std::string payload(100, 'x');
  for (const bool must : {true, false}) {
    const TcpPair pair = MakeTcpPair();
    FakeOwner owner;
    SendStream stream(&owner, {pair.a.get(), 0, 16, 0, must});
    HeldFrames& held = *stream.held();
    held.Begin(header.data(), {payload.data(), payload.size(), 0}, nullptr);
    held.Sent(kHeaderBytes + payload.size());
    held.Finish(false);
    ASSERT_TRUE(held.Rewind(0));
    EXPECT_EQ(must ? EPROTO : 0, stream.SendAgain());
    EXPECT_EQ(must ? "" : header + payload, ReadAvailable(pair.b.get()));
  }
}

}  // namespace
}  // namespace tcpx
