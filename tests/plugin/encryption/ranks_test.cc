// TCPX_ENCRYPT of two ranks: where both have it they talk, and neither log says anything else; where they disagree, or
// have different secrets, both logs name it, at once. After the end no key is left in memory.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/process_memory.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr char kSecret[] = "correct horse battery staple";

void UseEncryption(bool on, const char* secret = kSecret) {
  setenv("TCPX_SECRET_FILE", SecretFile(secret).c_str(), 1);
  setenv("TCPX_ENCRYPT", on ? "1" : "0", 1);
}

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.threads = 2, .lanes = 4}.Apply();
    setenv("TCPX_HELLO_TIMEOUT", "600", 1);
    setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
    unsetenv("TCPX_SECRET_FILE");
    unsetenv("TCPX_ENCRYPT");
  }
};

// x times 2 in the field of AES.
uint8_t Double(uint8_t x) { return static_cast<uint8_t>((x << 1) ^ ((x >> 7) * 0x1b)); }

std::vector<uint8_t> AesBox() {
  std::vector<uint8_t> box(256);
  uint8_t p = 1;
  uint8_t q = 1;
  do {
    p = static_cast<uint8_t>(p ^ Double(p));
    q = static_cast<uint8_t>(q ^ (q << 1));
    q = static_cast<uint8_t>(q ^ (q << 2));
    q = static_cast<uint8_t>(q ^ (q << 4));
    if (q & 0x80) q ^= 0x09;
    const auto turn = [q](int by) { return static_cast<uint8_t>((q << by) | (q >> (8 - by))); };
    box[p] = static_cast<uint8_t>(q ^ turn(1) ^ turn(2) ^ turn(3) ^ turn(4) ^ 0x63);
  } while (p != 1);
  box[0] = 0x63;
  return box;
}

// Whether these 32 bytes are a key of AES-128 and the first round key that follows from it, as every cipher keeps them.
bool IsSchedule(const uint8_t* k, const std::vector<uint8_t>& box) {
  for (int i = 0; i < 4; ++i) {
    const uint8_t round = i == 0 ? 1 : 0;
    if (k[16 + i] != static_cast<uint8_t>(k[i] ^ box[k[12 + (i + 1) % 4]] ^ round)) return false;
  }
  for (int i = 4; i < 16; ++i) {
    if (k[16 + i] != (k[i] ^ k[12 + i])) return false;
  }
  return true;
}

// How many keys of AES lie in memory that can be written: what somebody finds in a core dump.
int CountKeys() {
  const std::vector<uint8_t> box = AesBox();
  int found = 0;
  ForEachPieceOfMemory(32, [&](const MemoryPiece& piece) {
    for (size_t i = 0; i + 32 <= piece.bytes; i += 4) {
      found += IsSchedule(reinterpret_cast<const uint8_t*>(piece.data) + i, box) ? 1 : 0;
    }
  });
  return found;
}

void TalkTo(Rank* rank, const Ends& ends) { Transfer(&rank->net(), ends, {300000, 4, 8, true}); }

TEST_F(RanksTest, TalkToEachOther) {
  const auto talk = [](Control& peer) {
    UseEncryption(true);
    Rank rank;
    const Ends ends = rank.Connect(peer);
    TalkTo(&rank, ends);
    peer.Tell('d');
    peer.Await('d');
    rank.Close(ends);
    rank.Finalize();
    TCPX_REQUIRE(WarningCount() == 0 && CountInLog("stranger") == 0, LogText());
    TCPX_REQUIRE(CountInLog("TCPX_ENCRYPT: every socket is encrypted, by ") == 1, LogText());
  };
  EXPECT_EQ("", RunTogether(talk, talk));
}

TEST_F(RanksTest, LeaveNoKey) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory takes long to search, and keeps what was freed";
#endif
  EXPECT_EQ("", RunAlone([] {
              UseEncryption(true);
              setenv("TCPX_ENCRYPT_CIPHER", "aes128-gcm", 1);
              Rank rank;
              const int before = CountKeys();
              const Ends ends = rank.ConnectToSelf();
              TalkTo(&rank, ends);
              const int during = CountKeys();
              TCPX_REQUIRE(during > before, during, " keys are found while a connection is open, and before ", before);
              rank.Close(ends);
              rank.Finalize();
              // What lingers goes within TCPX_LINGER, and with it the reactor's last function.
              const absl::Time deadline = absl::Now() + kHungAfter / 2;
              while (CountKeys() > before) TCPX_REQUIRE(absl::Now() < deadline, CountKeys(), " keys are left");
            }));
}

struct Mismatch {
  const char* name;
  bool listens;
  bool dials;
  const char* told_listening;
  const char* told_dialling;
  const char* secret = kSecret;  // the dialler's
};
void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }

class MismatchTest : public RanksTest, public ::testing::WithParamInterface<Mismatch> {};

TEST_P(MismatchTest, IsReportedAtBothEnds) {
  const auto listens = [](Control& peer) {
    UseEncryption(GetParam().listens);
    Rank rank;
    char handle[kHandleBytesMax] = {};
    void* const listen = rank.Listen(handle);
    peer.Send(handle, sizeof(handle));
    peer.Await('r');
    rank.Close(rank.ConnectToSelf());
    rank.CloseListen(listen);
    rank.Finalize();
    TCPX_REQUIRE(CountInLog("peer, or stranger, 127.0.0.1:") == 1, LogText());
    TCPX_REQUIRE(CountInLog(GetParam().told_listening) == 1, LogText());
  };
  const auto dials = [](Control& peer) {
    UseEncryption(GetParam().dials, GetParam().secret);
    Rank rank;
    char handle[kHandleBytesMax];
    peer.Receive(handle, sizeof(handle));
    Ends ends;
    const ncclResult_t result = rank.Poll(handle, nullptr, &ends);
    TCPX_REQUIRE(result == ncclRemoteError, static_cast<int>(result), "; ", LogText());
    TCPX_REQUIRE(WarningCount() == 1 && CountInLog(GetParam().told_dialling) == 1, LogText());
    peer.Tell('r');
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(listens, dials));
}

INSTANTIATE_TEST_SUITE_P(
    Mismatches, MismatchTest,
    ::testing::Values(Mismatch{"TheDiallerDoesNot", true, false,
                               "does not encrypt, and this process has TCPX_ENCRYPT=1",
                               "the peer has TCPX_ENCRYPT=1 and this process has not"},
                      Mismatch{"TheListenerDoesNot", false, true, "has TCPX_ENCRYPT=1 and this process has not",
                               "this process has TCPX_ENCRYPT=1 and the peer has not"},
                      Mismatch{"TheirSecretsDiffer", true, true,
                               "did not prove the shared secret: give all ranks the same",
                               "the peer has another shared secret", "correct horse battery stapler"}),
    [](const auto& one) { return one.param.name; });

// A build from before encryption, with a secret or without one: in answer it gets words that it has.
TEST_F(RanksTest, AnOlderBuildIsRefusedInItsOwnWords) {
  EXPECT_EQ("", RunAlone([] {
              UseEncryption(true);
              Rank rank;
              char handle[kHandleBytesMax] = {};
              void* const listen = rank.Listen(handle);
              const auto status = [&](uint64_t features) {
                Hello hello;
                hello.features = features;
                Visitor visitor(handle);
                return static_cast<int>(StatusFor(&visitor, HelloFor(handle, hello)));
              };
              const uint64_t older = kFeatureHealth | kFeatureEstablished | kFeatureHeal | kFeatureHealHealth;
              const int wrong_version = static_cast<int>(HelloStatus::kWrongVersion);
              TCPX_REQUIRE(status(older) == wrong_version);
              TCPX_REQUIRE(status(older | kFeatureSecret) == wrong_version);
              TCPX_REQUIRE(status(older | kFeatureKnowsEncrypt) == static_cast<int>(HelloStatus::kEncryptMissing));
              TCPX_REQUIRE(CountInLog("does not encrypt, and this process has TCPX_ENCRYPT=1") == 1, LogText());
              rank.CloseListen(listen);
              rank.Finalize();
            }));
}

// A stranger at the port is refused, and costs no key; one who has an open ticket has to prove the rest.
TEST_F(RanksTest, AStrangerWithoutATicketGetsNoKey) {
  EXPECT_EQ("", RunAlone([] {
              UseEncryption(true);
              Rank rank;
              char handle[kHandleBytesMax] = {};
              void* const listen = rank.Listen(handle);
              Hello hello;
              hello.features = kFeatureSecret | kFeatureKnowsEncrypt | kFeatureEncrypt | kFeatureCiphers;
              const auto heard = [&](HelloKind kind, bool has_ticket) {
                hello.kind = kind;
                std::string said = HelloFor(handle, hello);
                if (!has_ticket) said[16] = static_cast<char>(said[16] ^ 1);
                Visitor visitor(handle);
                TCPX_REQUIRE(visitor.Say(said));
                const std::string answer = visitor.Hear(kAnswerFixedBytes);
                Answer decoded;
                int nics = 0;
                TCPX_REQUIRE(DecodeAnswer(answer.data(), &decoded, &nics) == nullptr);
                return decoded.status;
              };
              for (const HelloKind kind : {HelloKind::kLane, HelloKind::kHealth, HelloKind::kResume}) {
                const bool resumes = kind == HelloKind::kResume;
                TCPX_REQUIRE(heard(kind, false) == (resumes ? HelloStatus::kGone : HelloStatus::kUnknownTicket));
                TCPX_REQUIRE(heard(kind, true) == HelloStatus::kProve);
              }
              rank.CloseListen(listen);
              rank.Finalize();
            }));
}

// Who asks NCCL for encryption means all of it.
TEST_F(RanksTest, WarnWhereOnlyNcclEncrypts) {
  const auto warnings = [](const char* encrypts) {
    Mode settings = Encrypted(Mode());
    settings.environment["NCCL_SOCKET_ENCRYPTION"] = "psk";
    settings.environment["TCPX_ENCRYPT"] = encrypts;
    ClearLog();
    EXPECT_TRUE(TestPlugin::Open(settings).ok()) << LogText();
    return LogLines(NCCL_LOG_WARN).size();
  };
  EXPECT_EQ(warnings("0"), 1u) << LogText();
  EXPECT_EQ(warnings("1"), 0u) << LogText();
}

// What can't be had ends every connection, instead of going on in the clear.
TEST_F(RanksTest, NothingGoesOnInTheClear) {
  Mode settings = Encrypted(Mode());
  settings.environment["TCPX_ENCRYPT_CIPHER"] = "rot13";
  auto unknown = TestPlugin::Open(settings);
  ASSERT_TRUE(unknown.ok()) << "NCCL would take sockets of its own";
  char handle[kHandleBytesMax] = {};
  EXPECT_FALSE((*unknown)->Listen(handle).ok());
  EXPECT_TRUE(LogHas("TCPX_ENCRYPT_CIPHER rot13 is unknown")) << LogText();
}

}  // namespace
}  // namespace tcpx
