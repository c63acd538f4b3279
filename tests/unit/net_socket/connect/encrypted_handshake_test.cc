// The handshake of sockets that are encrypted: both sides get the same keys, of each socket its own; every bit of what
// passes flipped in turn; sides that disagree; somebody in between.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "net_socket/connect/handshake.h"
#include "net_socket/seal/cipher_suites.h"
#include "tests/unit/net_socket/connect/handshake_sides.h"

namespace tcpx {
namespace {

constexpr char kText[] = "sixteen and more";

std::vector<CipherSuite> Suites() {
  std::string by;
  return FindSuites(&by);
}

std::unique_ptr<Secret> Encrypting(const char* text, std::vector<CipherSuite> suites = Suites()) {
  auto secret = std::make_unique<Secret>(text);
  secret->Encrypt(std::make_unique<Encryption>(std::move(suites)));
  return secret;
}

// Both sides until neither has anything to say. The `flip`-th bit on the wire arrives changed.
struct Conversation {
  Conversation(const Secret* dials, const Secret* accepts, size_t flip = ~size_t{0})
      : dial(SomeHello(), dials), accept(accepts) {
    for (int round = 0; round < 4 && dial.status().ok() && !dial.done(); ++round) {
      Carry(dial.TakeSaid(), &accept, flip);
      const bool was_reading = reading;
      reading = accept.state() == AcceptHandshake::State::kReading;
      std::string back = accept.TakeSaid();
      Answer answer;
      answer.nics.push_back({*SocketAddress::Parse("10.1.2.3:80"), 10000});
      answer.status = accept.refusal();
      if (was_reading && !reading && accept.state() != AcceptHandshake::State::kForeign) back += accept.Encode(answer);
      Carry(back, &dial, flip);
    }
  }

  template <typename Side>
  void Carry(std::string bytes, Side* to, size_t flip) {
    if (flip / 8 - carried < bytes.size()) bytes[flip / 8 - carried] ^= static_cast<char>(1 << (flip % 8));
    carried += bytes.size();
    said.push_back(bytes);
    Feed(to, bytes, 17);
  }

  bool accepted() const { return dial.done() && dial.answer().status == HelloStatus::kAccepted; }
  std::string told() const {
    return dial.done() ? HelloStatusText(dial.answer().status) : std::string(dial.status().message());
  }

  DialHandshake dial;
  AcceptHandshake accept;
  bool reading = true;
  size_t carried = 0;
  std::vector<std::string> said;
};

std::string Sealed(Sealer* sealer, const std::string& text) {
  const iovec piece{const_cast<char*>(text.data()), text.size()};
  EXPECT_TRUE(sealer->Seal(&piece, 1));
  const iovec rest = sealer->rest();
  std::string sealed(static_cast<char*>(rest.iov_base), rest.iov_len);
  sealer->Took(rest.iov_len);
  return sealed;
}

bool Opens(Opener* opener, const std::string& sealed, const std::string& text) {
  std::string out;
  return opener->OpenAll(sealed.data(), sealed.size(), &out) && out == text;
}

TEST(EncryptedHandshakeTest, GivesBothTheSameKeys) {
  for (const CipherSuite suite : Suites()) {
    const auto secret = Encrypting(kText, {suite});
    Conversation one(secret.get(), secret.get());
    ASSERT_TRUE(one.accepted()) << one.told();
    Seals dialler = one.dial.TakeSeals();
    Seals acceptor = one.accept.TakeSeals();
    const std::string there = Sealed(dialler.sealer.get(), "there");
    const std::string back = Sealed(acceptor.sealer.get(), "back");
    EXPECT_TRUE(Opens(acceptor.opener.get(), there, "there"));
    EXPECT_TRUE(Opens(dialler.opener.get(), back, "back"));
    // Not what was said to the other one, nor what another socket's peer says.
    EXPECT_FALSE(Opens(dialler.opener.get(), Sealed(dialler.sealer.get(), "reflected"), "reflected"));
    Conversation other(secret.get(), secret.get());
    Seals elsewhere = other.accept.TakeSeals();
    EXPECT_FALSE(Opens(elsewhere.opener.get(), there, "there"));
  }
}

TEST(EncryptedHandshakeTest, TakesTheBestThatBothHave) {
  const std::vector<CipherSuite> suites = Suites();
  const auto all = Encrypting(kText);
  const auto last = Encrypting(kText, {suites.back()});
  for (const bool dials : {true, false}) {
    Conversation one(dials ? all.get() : last.get(), dials ? last.get() : all.get());
    ASSERT_TRUE(one.accepted()) << one.told();
    Seals dialler = one.dial.TakeSeals();
    EXPECT_TRUE(Opens(one.accept.TakeSeals().opener.get(), Sealed(dialler.sealer.get(), "x"), "x"));
  }
  if (suites.size() < 2) GTEST_SKIP() << "one cipher here";
  const auto first = Encrypting(kText, {suites.front()});
  Conversation none(first.get(), last.get());
  EXPECT_EQ(none.told(), HelloStatusText(HelloStatus::kNoCipher));
}

TEST(EncryptedHandshakeTest, SidesThatDisagreeAreReported) {
  const Secret plain(kText);
  const auto sealed = Encrypting(kText);
  const auto other = Encrypting("sixteen and other");
  EXPECT_EQ(Conversation(&plain, sealed.get()).told(), HelloStatusText(HelloStatus::kEncryptMissing));
  EXPECT_EQ(Conversation(sealed.get(), &plain).told(), HelloStatusText(HelloStatus::kEncryptAlone));
  EXPECT_EQ(Conversation(nullptr, sealed.get()).told(), HelloStatusText(HelloStatus::kEncryptMissing));
  EXPECT_EQ(Conversation(sealed.get(), nullptr).told(), HelloStatusText(HelloStatus::kEncryptAlone));
  EXPECT_EQ(Conversation(other.get(), sealed.get()).told(), HelloStatusText(HelloStatus::kSecretWrong));
}

// An acceptor that proves the secret, and says that nothing is encrypted, is one that somebody has talked down.
TEST(EncryptedHandshakeTest, NobodyIsTalkedDown) {
  const auto sealed = Encrypting(kText);
  const Secret plain(kText);
  DialHandshake dial(SomeHello(), sealed.get());
  AcceptHandshake accept(&plain);
  (void)dial.TakeSaid();
  Hello stripped = SomeHello();
  stripped.features = kFeatureSecret;
  std::string clear(kHelloBytes, '\0');
  EncodeHello(stripped, &clear[0]);
  Feed(&accept, clear, 64);
  Feed(&dial, accept.TakeSaid(), 64);
  EXPECT_EQ(std::string(dial.status().message()), HelloStatusText(HelloStatus::kEncryptAlone));
}

TEST(EncryptedHandshakeTest, NoFlippedBitPasses) {
  const auto secret = Encrypting(kText);
  const Conversation whole(secret.get(), secret.get());
  ASSERT_TRUE(whole.accepted());
  // Also not the highest bit of a public key, which means nothing to X25519: the transcript has it.
  for (size_t flip = 0; flip < 8 * whole.carried; ++flip) {
    const Conversation one(secret.get(), secret.get(), flip);
    EXPECT_FALSE(one.accepted()) << "bit " << flip << " of " << 8 * whole.carried;
  }
}

// A key for everybody who can reach the port would cost the acceptor's thread more than it costs him.
TEST(EncryptedHandshakeTest, WhoHasNoOpenTicketGetsNoKey) {
  const auto secret = Encrypting(kText);
  const AcceptHandshake::Known known = [](const Hello& hello) { return hello.ticket[0] != 7; };
  for (const bool open : {true, false}) {
    for (const HelloKind kind : {HelloKind::kLane, HelloKind::kHealth, HelloKind::kResume}) {
      Hello hello = SomeHello();
      hello.kind = kind;
      hello.ticket[0] = open ? 8 : 7;
      DialHandshake dial(hello, secret.get());
      AcceptHandshake accept(secret.get(), &known);
      Feed(&accept, dial.TakeSaid(), 64);
      EXPECT_EQ(open ? kNonceBytes + kAnswerFixedBytes : 0, accept.TakeSaid().size());
      ASSERT_EQ(open ? AcceptHandshake::State::kReading : AcceptHandshake::State::kRefused, accept.state());
      if (open) continue;
      EXPECT_EQ(kind == HelloKind::kResume ? HelloStatus::kGone : HelloStatus::kUnknownTicket, accept.refusal());
      Answer answer;
      answer.status = accept.refusal();
      Feed(&dial, accept.Encode(answer), 64);
      EXPECT_TRUE(dial.done());
      EXPECT_EQ(accept.refusal(), dial.answer().status);
    }
  }
}

// Somebody who has both ends talk to him, with keys of his own, and no secret.
TEST(EncryptedHandshakeTest, NobodyInBetweenGetsThrough) {
  const auto secret = Encrypting(kText);
  const auto guess = Encrypting("a guess of his, long enough");
  EXPECT_FALSE(Conversation(secret.get(), guess.get()).accepted());
  EXPECT_FALSE(Conversation(guess.get(), secret.get()).accepted());
}

}  // namespace
}  // namespace tcpx
