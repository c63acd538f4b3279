// Hello, challenge, proof and answer, as the two sides say them: byte by byte, with every byte changed once, and by
// sides that do not share a secret.
#include "net_socket/connect/handshake.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/net_socket/connect/handshake_sides.h"

namespace tcpx {
namespace {

constexpr char kText[] = "sixteen and more";

Answer SomeAnswer() {
  Answer answer;
  answer.nics.push_back({*SocketAddress::Parse("10.1.2.3:80"), 10000});
  answer.nics.push_back({*SocketAddress::Parse("10.1.2.4:81"), 20000});
  return answer;
}

// Both sides until neither has anything to say. The `flip`-th byte on the wire arrives changed.
struct Conversation {
  Conversation(const Secret* dials, const Secret* accepts, size_t piece = 64, size_t flip = ~size_t{0})
      : dial(SomeHello(), dials), accept(accepts) {
    for (int round = 0; round < 4; ++round) {
      Carry(dial.TakeSaid(), &accept, piece, flip);
      const bool was_reading = reading;
      reading = accept.state() == AcceptHandshake::State::kReading;
      std::string back = accept.TakeSaid();
      Answer answer = SomeAnswer();
      answer.status = accept.refusal();
      if (was_reading && !reading && accept.state() != AcceptHandshake::State::kForeign) back += accept.Encode(answer);
      Carry(back, &dial, piece, flip);
      if (!dial.status().ok() || dial.done()) return;
    }
  }

  template <typename Side>
  void Carry(std::string bytes, Side* to, size_t piece, size_t flip) {
    if (flip - carried < bytes.size()) bytes[flip - carried] ^= 0x10;
    carried += bytes.size();
    Feed(to, bytes, piece);
  }

  bool accepted() const { return dial.done() && dial.answer().status == HelloStatus::kAccepted; }

  DialHandshake dial;
  AcceptHandshake accept;
  bool reading = true;
  size_t carried = 0;
};

class HandshakeTest : public ::testing::Test {
 protected:
  const Secret ours_{kText};
  const Secret same_{kText};
  const Secret other_{"sixteen and other"};
};

TEST_F(HandshakeTest, WithoutASecretItIsHelloAndAnswer) {
  for (size_t piece : {1, 7, 64, 500}) {
    const Conversation talk(nullptr, nullptr, piece);
    ASSERT_TRUE(talk.accepted()) << piece << ": " << talk.dial.status();
    EXPECT_EQ(kHelloBytes + kAnswerFixedBytes + 2 * kPeerNicBytes, talk.carried);
    EXPECT_EQ(2u, talk.dial.answer().nics.size());
    EXPECT_EQ(SomeHello().connection_id, talk.accept.hello().connection_id);
  }
}

TEST_F(HandshakeTest, WithTheSameSecretBothProveIt) {
  for (size_t piece : {1, 7, 64, 500}) {
    const Conversation talk(&ours_, &same_, piece);
    ASSERT_TRUE(talk.accepted()) << piece << ": " << talk.dial.status();
    EXPECT_EQ(2u, talk.dial.answer().nics.size());
    EXPECT_NE(0u, talk.dial.answer().features & kFeatureSecret);
  }
}

TEST_F(HandshakeTest, WithAnotherSecretTheProofIsRefused) {
  const Conversation talk(&ours_, &other_);
  ASSERT_TRUE(talk.dial.done());
  EXPECT_EQ(HelloStatus::kSecretWrong, talk.dial.answer().status);
  EXPECT_EQ(HelloStatus::kSecretWrong, talk.accept.refusal());
}

TEST_F(HandshakeTest, ADiallerWithoutOneIsRefused) {
  const Conversation dialler(nullptr, &ours_);
  ASSERT_TRUE(dialler.dial.done());
  EXPECT_EQ(HelloStatus::kSecretMissing, dialler.dial.answer().status);
  const Conversation acceptor(&ours_, nullptr);
  ASSERT_TRUE(acceptor.dial.done());
  EXPECT_EQ(HelloStatus::kSecretAlone, acceptor.dial.answer().status);
}

// As an older build does, which does not know the feature.
TEST_F(HandshakeTest, AnAcceptanceWithoutAProofIsNone) {
  DialHandshake dial(SomeHello(), &ours_);
  AcceptHandshake accept(nullptr);
  std::string hello = dial.TakeSaid();
  hello[48] = 0;  // the features
  Feed(&accept, hello, 64);
  ASSERT_EQ(AcceptHandshake::State::kGreeted, accept.state());
  Feed(&dial, accept.Encode(SomeAnswer()), 500);
  EXPECT_FALSE(dial.done());
  EXPECT_NE(dial.status().message().find("the peer has none"), std::string::npos) << dial.status();
}

// Whatever a man in the middle changes, the connection does not come about: not the hello, not the answer, no nonce.
TEST_F(HandshakeTest, NoByteCanBeChanged) {
  const size_t bytes = Conversation(&ours_, &same_).carried;
  ASSERT_EQ(
      kHelloBytes + kAnswerFixedBytes + kNonceBytes + kProofBytes + kAnswerFixedBytes + 2 * kPeerNicBytes + kMacBytes,
      bytes);
  for (size_t i = 0; i < bytes; ++i) {
    // Only status and nonce of the challenge mean something.
    const size_t in_challenge = i - kHelloBytes;
    if (in_challenge < kAnswerFixedBytes) continue;
    const Conversation talk(&ours_, &same_, 64, i);
    EXPECT_FALSE(talk.accepted()) << "byte " << i;
  }
}

TEST_F(HandshakeTest, EachConversationIsAnother) {
  AcceptHandshake accepts[2] = {AcceptHandshake(&ours_), AcceptHandshake(&ours_)};
  std::string challenges[2];
  std::string proofs[2];
  for (int i = 0; i < 2; ++i) {
    DialHandshake dial(SomeHello(), &ours_);
    Feed(&accepts[i], dial.TakeSaid(), 64);
    challenges[i] = accepts[i].TakeSaid();
    Feed(&dial, challenges[0], 64);  // both times the same one
    proofs[i] = dial.TakeSaid();
    ASSERT_EQ(kProofBytes, proofs[i].size());
  }
  EXPECT_NE(challenges[0], challenges[1]);
  EXPECT_NE(proofs[0], proofs[1]);
  // What was recorded from the first is no proof to the second, to which it is new.
  Feed(&accepts[1], proofs[0], 64);
  EXPECT_EQ(AcceptHandshake::State::kRefused, accepts[1].state());
  EXPECT_EQ(HelloStatus::kSecretWrong, accepts[1].refusal());
}

// A dialler's own proof, sent back to it where the acceptor's belongs.
TEST_F(HandshakeTest, AProofIsNotItsOwnAnswer) {
  DialHandshake dial(SomeHello(), &ours_);
  AcceptHandshake accept(&ours_);
  Feed(&accept, dial.TakeSaid(), 64);
  Feed(&dial, accept.TakeSaid(), 64);
  const std::string proof = dial.TakeSaid();
  std::string answer(kAnswerBytesMax, '\0');
  answer.resize(EncodeAnswer(Answer(), &answer[0]));
  Feed(&dial, answer + proof.substr(kNonceBytes), 500);
  EXPECT_FALSE(dial.done());
  EXPECT_NE(dial.status().message().find("did not prove"), std::string::npos) << dial.status();
}

TEST_F(HandshakeTest, AChallengeThatNobodyAskedForIsAnError) {
  AcceptHandshake accept(&ours_);
  Feed(&accept, DialHandshake(SomeHello(), &ours_).TakeSaid(), 64);
  const std::string challenge = accept.TakeSaid();
  DialHandshake without(SomeHello(), nullptr);
  Feed(&without, challenge, 64);
  EXPECT_FALSE(without.status().ok());
  DialHandshake twice(SomeHello(), &ours_);
  Feed(&twice, challenge, 64);
  EXPECT_TRUE(twice.status().ok());
  Feed(&twice, challenge, 64);
  EXPECT_FALSE(twice.status().ok());
}

}  // namespace
}  // namespace tcpx
