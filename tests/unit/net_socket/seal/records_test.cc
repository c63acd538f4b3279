// Records between a sealer and an opener: the bytes of the vectors, and everything that somebody in between can do to
// them: each bit flipped, each record left out, repeated, exchanged, cut, or taken from another direction or socket.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/opener.h"
#include "net_socket/seal/sealer.h"
#include "tests/support/deadline.h"
#include "tests/support/process_memory.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

std::vector<CipherSuite> Suites() {
  std::string by;
  return FindSuites(&by);
}

Key32 FromHex(const char* hex) {
  Key32 key;
  absl::HexStringToBytes(hex).copy(reinterpret_cast<char*>(key.data()), Key32::size());
  return key;
}

TrafficKeys KeysOf(CipherSuite suite, uint8_t which = 1, uint64_t records_per_key = kRecordsPerKey) {
  TrafficKeys keys;
  keys.suite = suite;
  std::fill(keys.secret.data(), keys.secret.data() + Key32::size(), which);
  keys.records_per_key = records_per_key;
  return keys;
}

std::shared_ptr<SealBuffers> Buffers() { return std::make_shared<SealBuffers>(); }

iovec Piece(const std::string& text) { return {const_cast<char*>(text.data()), text.size()}; }

// Each text a record.
std::vector<std::string> SealAll(const TrafficKeys& keys, const std::vector<std::string>& texts) {
  Sealer sealer(keys, Buffers());
  std::vector<std::string> records;
  for (const std::string& text : texts) {
    const iovec piece = Piece(text);
    EXPECT_TRUE(sealer.Seal(&piece, 1));
    const iovec rest = sealer.rest();
    records.emplace_back(static_cast<char*>(rest.iov_base), rest.iov_len);
    EXPECT_EQ(sealer.Took(rest.iov_len), text.size());
  }
  return records;
}

std::string Join(const std::vector<std::string>& records) {
  std::string all;
  for (const std::string& record : records) all += record;
  return all;
}

// What comes out of it, and whether it stays whole.
std::string OpenAll(const TrafficKeys& keys, const std::string& sealed, bool* whole) {
  Opener opener(keys, Buffers());
  std::string out;
  *whole = opener.OpenAll(sealed.data(), sealed.size(), &out) && !opener.cut();
  return out;
}

bool Begins(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

// Never anything but a beginning of what was sealed.
void ExpectBeginning(const TrafficKeys& keys, const std::string& sealed, const std::string& all, const char* what) {
  bool whole = false;
  const std::string out = OpenAll(keys, sealed, &whole);
  EXPECT_TRUE(Begins(all, out)) << what;
  EXPECT_FALSE(whole) << what;
  EXPECT_LT(out.size(), all.size() + 1) << what;
}

TEST(RecordsTest, GivesTheVectorsOfTheDocument) {
  const Key32 secret = FromHex("dfc75bfa0e4a26924eb474c4b28daaf2ebddcbfa53646865851e020371862e0d");
  const char* const expected[kCipherSuites][3] = {
      {"100000006a65d26c8ab48ee9cc27625a9e00070f5553706d8e779733436cb319ac819143",
       "07000000497d7bd3fa956f2bc91d337465aa1ad88bb2809346800f",
       "10000000e4164071033f6bbf2af80e84cfa1640fdbbc22026016d6180eb31f22f2ec719d"},
      {"10000000d31d27f7eeffacf80085467db02b8584de38c04e28edb77a1a9d957834d2df26",
       "07000000054827def6e82acd2b32d4d41e2b9a6f973b00a8401eda",
       "1000000011e55f8f0d30cdbd759d95d1efd8af1e396c440746b0296f601b0abb5477ce21"},
      {"100000007bf81ff2b2a8f6826a37b93c0567aa9a425915ee5c2d599f1f0d9695632c6d93",
       "07000000b019af61718a8861cd4007573583c24302650bed712c6d",
       "100000002cb5edc9b336ae1597208dfc1408265fe8bda5dda9d8bac2180bdda19746edcf"},
  };
  for (const CipherSuite suite : Suites()) {
    const auto records = SealAll({suite, secret, 2}, {"the first record", "another", "behind a new key"});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(absl::BytesToHexString(records[static_cast<size_t>(i)]), expected[static_cast<int>(suite)][i]);
    }
  }
}

TEST(RecordsTest, NoFlippedBitPasses) {
  const std::vector<std::string> texts = {"one", std::string(70, 'x'), "three"};
  for (const CipherSuite suite : Suites()) {
    const std::string sealed = Join(SealAll(KeysOf(suite), texts));
    bool whole = false;
    EXPECT_EQ(OpenAll(KeysOf(suite), sealed, &whole), Join(texts));
    EXPECT_TRUE(whole);
    for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
      std::string flipped = sealed;
      flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      ExpectBeginning(KeysOf(suite), flipped, Join(texts), "a flipped bit");
    }
  }
}

TEST(RecordsTest, NoRecordMoves) {
  const std::vector<std::string> texts = {"aaaa", "bbbb", "cccc", "dddd", "eeee"};
  for (const CipherSuite suite : Suites()) {
    const TrafficKeys keys = KeysOf(suite);
    const auto records = SealAll(keys, texts);
    const auto others = SealAll(KeysOf(suite, 2), texts);
    for (size_t i = 0; i < records.size(); ++i) {
      auto changed = records;
      changed.insert(changed.begin() + static_cast<ptrdiff_t>(i), records[i]);
      ExpectBeginning(keys, Join(changed), Join(texts), "a repeated record");
      changed = records;
      changed[i] = others[i];
      ExpectBeginning(keys, Join(changed), Join(texts), "a record of another socket or direction");
      for (size_t j = i + 1; j < records.size(); ++j) {
        changed = records;
        std::swap(changed[i], changed[j]);
        ExpectBeginning(keys, Join(changed), Join(texts), "exchanged records");
      }
      if (i + 1 == records.size()) continue;
      changed = records;
      changed.erase(changed.begin() + static_cast<ptrdiff_t>(i));
      ExpectBeginning(keys, Join(changed), Join(texts), "a record left out");
    }
  }
}

TEST(RecordsTest, AnyCutShows) {
  const std::vector<std::string> texts = {"one", "two", "three"};
  const TrafficKeys keys = KeysOf(Suites().front());
  const auto records = SealAll(keys, texts);
  const std::string sealed = Join(records);
  for (size_t cut = 0; cut < sealed.size(); ++cut) {
    bool whole = false;
    EXPECT_TRUE(Begins(Join(texts), OpenAll(keys, sealed.substr(0, cut), &whole)));
    EXPECT_EQ(whole, cut == 0 || cut == records[0].size() || cut == records[0].size() + records[1].size());
  }
}

TEST(RecordsTest, NoLengthIsBelieved) {
  for (const uint32_t length : {uint32_t{0}, uint32_t{kSealedBytesMax} + 1, ~uint32_t{0}, ~uint32_t{0} - 19}) {
    Opener opener(KeysOf(Suites().front()), Buffers());
    std::string sealed(reinterpret_cast<const char*>(&length), sizeof(length));
    sealed += std::string(100, '\0');
    std::string out;
    EXPECT_FALSE(opener.OpenAll(sealed.data(), sealed.size(), &out));
    EXPECT_TRUE(opener.broken());
    EXPECT_EQ(out, "");
  }
}

TEST(RecordsTest, AFaultStays) {
  const TrafficKeys keys = KeysOf(Suites().front());
  const auto records = SealAll(keys, {"one", "two"});
  Opener opener(keys, Buffers());
  std::string out;
  EXPECT_FALSE(opener.OpenAll(records[1].data(), records[1].size(), &out));
  EXPECT_FALSE(opener.OpenAll(records[0].data(), records[0].size(), &out));
  EXPECT_EQ(out, "");
  EXPECT_EQ(opener.next(), 0u);
}

// Pieces of any length over a socket that takes little at a time, with a new key every few records.
TEST(RecordsTest, CarriesAnyPieces) {
  Rng rng(TestSeed());
  const TcpPair pair = MakeTcpPair(4096);
  for (const CipherSuite suite : Suites()) {
    const TrafficKeys keys = KeysOf(suite, 5, 7);
    Sealer sealer(keys, Buffers());
    Opener opener(keys, Buffers());
    std::string sent;
    for (int i = 0; i < 200; ++i) {
      const size_t longest = i % 20 == 0 ? 300'000 : i % 3 == 0 ? 20'000 : 100;
      sent += std::string(rng.Between(0, longest), static_cast<char>('a' + i % 26));
    }
    std::string received;
    size_t at = 0;
    bool idle = false;
    while (received.size() < sent.size()) {
      const size_t first = std::min<size_t>(rng.Between(0, 70), sent.size() - at);
      const iovec pieces[] = {{&sent[0] + at, first}, {&sent[0] + at + first, sent.size() - at - first}};
      const ssize_t taken = at < sent.size() ? sealer.Send(pair.a.get(), pieces, 2) : 0;
      ASSERT_TRUE(taken >= 0 || errno == EAGAIN);
      if (taken > 0) at += static_cast<size_t>(taken);
      ASSERT_GE(sealer.Unacked(0), 0);
      const iovec room = opener.Room(idle = !idle);
      const ssize_t got =
          recv(pair.b.get(), room.iov_base, std::min<size_t>(room.iov_len, rng.Between(1, 100'000)), MSG_DONTWAIT);
      if (got > 0) opener.Took(static_cast<size_t>(got));
      while (const size_t plain = opener.next()) {
        std::string text(plain, '\0');
        ASSERT_TRUE(opener.Open(&text[0]));
        received += text;
      }
      ASSERT_FALSE(opener.broken());
    }
    EXPECT_TRUE(received == sent);
    EXPECT_EQ(sealer.Unacked(0), 0);
    opener.GiveBack();
  }
}

// What the peer's kernel has acknowledged, in plaintext: whole records, never more, and all in the end.
TEST(RecordsTest, CountsWhatIsAcknowledged) {
  Sealer sealer(KeysOf(Suites().front()), Buffers());
  uint64_t sealed = 0;
  EXPECT_EQ(sealer.Unacked(0), 0);
  for (int i = 0; i < 1000; ++i) {
    const std::string text(100, 'x');
    const iovec piece = Piece(text);
    ASSERT_TRUE(sealer.Seal(&piece, 1));
    sealed += sealer.rest().iov_len;
    EXPECT_EQ(sealer.Took(50), 0u);
    EXPECT_EQ(sealer.Took(sealer.rest().iov_len), 100u);
    if (i == 10) {
      EXPECT_EQ(sealer.Unacked(static_cast<int64_t>(sealed)), 1100);
      EXPECT_EQ(sealer.Unacked(121), 200);
      EXPECT_EQ(sealer.Unacked(120), 100);
      EXPECT_EQ(sealer.Unacked(119), 100);
    }
  }
  EXPECT_EQ(sealer.Unacked(-1), -1);
  EXPECT_GE(sealer.Unacked(120 * 500), 100 * 500);
  EXPECT_EQ(sealer.Unacked(0), 0);
}

// A pace follows every byte, and never goes back; what it reports counts whole records.
TEST(RecordsTest, FollowsWhatIsAcknowledgedInsideARecord) {
  Sealer sealer(KeysOf(Suites().front()), Buffers());
  EXPECT_EQ(sealer.UnackedAbout(-1), -1);
  EXPECT_EQ(sealer.UnackedAbout(0), 0);
  const std::string text(100, 'x');
  const iovec piece = Piece(text);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(sealer.Seal(&piece, 1));
    EXPECT_EQ(sealer.Took(sealer.rest().iov_len), 100u);
  }
  EXPECT_EQ(sealer.UnackedAbout(360), 300);
  EXPECT_EQ(sealer.UnackedAbout(359), 299);
  EXPECT_EQ(sealer.UnackedAbout(261), 201);
  EXPECT_EQ(sealer.UnackedAbout(260), 200);
  EXPECT_EQ(sealer.UnackedAbout(241), 200);
  EXPECT_EQ(sealer.Unacked(241), 300);
  EXPECT_EQ(sealer.UnackedAbout(240), 200);
  EXPECT_EQ(sealer.UnackedAbout(230), 190);
  EXPECT_EQ(sealer.UnackedAbout(239), 190);
  EXPECT_EQ(sealer.Unacked(239), 200);
  EXPECT_EQ(sealer.UnackedAbout(0), 0);
}

// What was sent before anybody asked counts as one.
TEST(RecordsTest, CountsWhatIsAcknowledgedFromWhenItIsAsked) {
  Sealer sealer(KeysOf(Suites().front()), Buffers());
  const std::string text(100, 'x');
  const iovec piece = Piece(text);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(sealer.Seal(&piece, 1));
    EXPECT_EQ(sealer.Took(sealer.rest().iov_len), 100u);
    if (i == 4) {
      EXPECT_EQ(sealer.Unacked(120), 500);
    }
  }
  EXPECT_EQ(sealer.Unacked(121), 200);
  EXPECT_EQ(sealer.Unacked(0), 0);
}

// A caller that offers less than is pending gets no larger count, and what is stopped sends nothing.
TEST(RecordsTest, TakesNoMoreThanIsOffered) {
  Sealer sealer(KeysOf(Suites().front()), Buffers());
  const TcpPair pair = MakeTcpPair(4096);
  const std::string text(size_t{1} << 20, 'x');
  const iovec piece = Piece(text);
  while (!sealer.pending()) (void)sealer.Send(pair.a.get(), &piece, 1);
  const std::string less(10, 'x');
  const iovec few = Piece(less);
  const Deadline deadline;
  ssize_t sent = -1;
  while (sent < 0) {
    ASSERT_TRUE(deadline.Yield());
    (void)ReadAvailable(pair.b.get());
    sent = sealer.Send(pair.a.get(), &few, 1);
  }
  EXPECT_LE(sent, 10);
  sealer.Stop();
  errno = 0;
  EXPECT_EQ(sealer.Send(pair.a.get(), &few, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// How often the complement of `needle` is in memory that can be written.
int CountComplement(const std::string& needle) {
  int found = 0;
  const auto same = [](char a, char b) { return a == static_cast<char>(~b); };
  ForEachPieceOfMemory(needle.size() - 1, [&](const MemoryPiece& piece) {
    const char* const end = piece.data + piece.bytes;
    for (const char* next = piece.data; next != end; ++next) {
      next = std::search(next, end, needle.begin(), needle.end(), same);
      if (next == end) break;
      ++found;
    }
  });
  return found;
}

// Searched for in all that can be written.
TEST(RecordsTest, NothingOfAKeyIsLeft) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory takes long to search, and keeps what was freed";
#endif
  // That of the vectors, turned over, so that this test has no copy of its own.
  const std::string needle = absl::HexStringToBytes("dfe71804b0b9a613dc033a0b57f21551");
  const auto count = [&needle] { return CountComplement(needle); };
  for (const CipherSuite suite : Suites()) {
    if (KeyBytes(suite) != 16) continue;
    EXPECT_EQ(count(), 0);
    {
      Key32 secret = FromHex("dfc75bfa0e4a26924eb474c4b28daaf2ebddcbfa53646865851e020371862e0d");
      Sealer sealer({suite, secret, kRecordsPerKey}, Buffers());
      const std::string text(1000, 'x');
      const iovec piece = Piece(text);
      ASSERT_TRUE(sealer.Seal(&piece, 1));
      EXPECT_GT(count(), 0) << "the search finds nothing";
    }
    EXPECT_EQ(count(), 0);
  }
}

}  // namespace
}  // namespace tcpx
