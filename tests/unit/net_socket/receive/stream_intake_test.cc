// What a lane's old socket had left comes first, and counts.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "net_socket/engine/socket_swap.h"
#include "net_socket/receive/receive_stream.h"
#include "net_socket/seal/seals.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

std::string Receive(StreamIntake* intake, int fd, size_t first, size_t second) {
  char bytes[64] = {};
  iovec iov[2] = {{bytes, first}, {bytes + first, second}};
  const ssize_t got = intake->Receive(fd, iov, 2);
  return got < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(got));
}

TEST(StreamIntakeTest, GoesOnInTheMiddle) {
  TcpPair before = MakeTcpPair();
  TcpPair after = MakeTcpPair();
  const int fd = before.b.get();
  StreamIntake intake;
  ASSERT_TRUE(WriteAll(before.a.get(), "0123456789"));
  EXPECT_EQ("012", Receive(&intake, fd, 1, 2));
  EXPECT_EQ(3u, intake.taken());
  EXPECT_TRUE(intake.Freeze(fd));
  EXPECT_EQ(10u, intake.taken());
  ASSERT_TRUE(ReplaceSocket(fd, after.b.get()).ok());
  ASSERT_TRUE(WriteAll(after.a.get(), "abc"));
  EXPECT_EQ("3456", Receive(&intake, fd, 3, 1));
  // A second loss, with something left of the first.
  EXPECT_TRUE(intake.Freeze(fd));
  EXPECT_EQ(13u, intake.taken());
  EXPECT_EQ("789abc", Receive(&intake, fd, 5, 50));
  EXPECT_EQ(13u, intake.taken());
}

// One direction of a socket of its own.
struct SealedWay {
  explicit SealedWay(uint8_t key) {
    TrafficKeys keys;
    keys.suite = CipherSuite::kChaCha20Poly1305;
    std::memset(keys.secret.data(), key, Key32::size());
    sealer = std::make_unique<Sealer>(keys, buffers);
    opener = std::make_unique<Opener>(keys, buffers);
  }

  std::string Seal(const std::string& text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    EXPECT_TRUE(sealer->Seal(&piece, 1));
    const iovec rest = sealer->rest();
    std::string sealed(static_cast<char*>(rest.iov_base), rest.iov_len);
    (void)sealer->Took(rest.iov_len);
    return sealed;
  }

  const std::shared_ptr<SealBuffers> buffers = std::make_shared<SealBuffers>();
  std::unique_ptr<Sealer> sealer;
  std::unique_ptr<Opener> opener;
};

// The count is of plaintext; a record that was not whole when its socket died was never there, and the next socket's
// records go by other keys.
TEST(StreamIntakeTest, GoesOnBetweenTheRecordsOfSealedSockets) {
  TcpPair before = MakeTcpPair();
  TcpPair after = MakeTcpPair();
  const int fd = before.b.get();
  SealedWay first(1);
  SealedWay second(2);
  StreamIntake intake;
  intake.OpenBy(std::move(first.opener));
  ASSERT_TRUE(WriteAll(before.a.get(), first.Seal("0123")));
  ASSERT_TRUE(WriteAll(before.a.get(), first.Seal("456789")));
  ASSERT_TRUE(WriteAll(before.a.get(), first.Seal("never").substr(0, 20)));
  EXPECT_EQ("012", Receive(&intake, fd, 1, 2));
  EXPECT_EQ(4u, intake.taken());
  EXPECT_TRUE(intake.Freeze(fd));
  EXPECT_EQ(10u, intake.taken());
  ASSERT_TRUE(ReplaceSocket(fd, after.b.get()).ok());
  intake.OpenBy(std::move(second.opener));
  ASSERT_TRUE(WriteAll(after.a.get(), second.Seal("abc")));
  ASSERT_TRUE(WriteAll(after.a.get(), second.Seal("defghi")));
  EXPECT_EQ("3456", Receive(&intake, fd, 3, 1));
  EXPECT_EQ("789", Receive(&intake, fd, 5, 50));
  EXPECT_EQ("abc", Receive(&intake, fd, 5, 50));
  EXPECT_EQ("defg", Receive(&intake, fd, 4, 0));
  EXPECT_EQ("hi", Receive(&intake, fd, 4, 4));
  EXPECT_EQ(19u, intake.taken());
  EXPECT_FALSE(intake.cut());
  EXPECT_EQ("nothing", Receive(&intake, fd, 4, 4));
}

TEST(StreamIntakeTest, GivesNothingOutThatIsNotAuthentic) {
  TcpPair pair = MakeTcpPair();
  SealedWay way(1);
  StreamIntake intake;
  intake.OpenBy(std::move(way.opener));
  const std::string good = way.Seal("good");
  std::string bad = way.Seal("bad");
  bad.back() ^= 1;
  ASSERT_TRUE(WriteAll(pair.a.get(), good + bad));
  ASSERT_TRUE(WriteAll(pair.a.get(), way.Seal("later")));
  EXPECT_EQ("good", Receive(&intake, pair.b.get(), 20, 20));
  for (int i = 0; i < 3; ++i) {
    errno = 0;
    EXPECT_EQ("nothing", Receive(&intake, pair.b.get(), 20, 20));
    EXPECT_EQ(EBADMSG, errno);
  }
  EXPECT_EQ(4u, intake.taken());
  EXPECT_FALSE(intake.Freeze(pair.b.get()));
  EXPECT_EQ(4u, intake.taken());
}

// Where a record has come in part, all of it is asked for, however little its reader waits for.
TEST(StreamIntakeTest, AsksForTheRestOfARecordAtOnce) {
  SealedWay way(1);
  StreamIntake intake;
  intake.OpenBy(std::move(way.opener));
  const std::string sealed = way.Seal(std::string(8000, 'x'));
  iovec room = intake.Room(0);
  ASSERT_GE(room.iov_len, 100u);
  std::memcpy(room.iov_base, sealed.data(), 100);
  intake.TookSealed(100);
  room = intake.Room(0);
  ASSERT_GE(room.iov_len, sealed.size() - 100);
  std::memcpy(room.iov_base, sealed.data() + 100, sealed.size() - 100);
  intake.TookSealed(sealed.size() - 100);
  std::string text(8000, ' ');
  const iovec place{&text[0], text.size()};
  EXPECT_EQ(8000, intake.ReadHeld(&place, 1));
  EXPECT_EQ(std::string(8000, 'x'), text);
}

// What comes before it is wanted stays in the kernel, so that its sender waits; and what lies here all the same is
// known.
TEST(StreamIntakeTest, ReadsLittleMoreThanThePlacesNeed) {
  constexpr size_t kLong = 40'000;
  constexpr int kRecords = 8;
  TcpPair pair = MakeTcpPair(1 << 20);
  const int fd = pair.b.get();
  SealedWay way(1);
  StreamIntake intake;
  intake.OpenBy(std::move(way.opener));
  EXPECT_FALSE(intake.holds());
  ASSERT_TRUE(WriteAll(pair.a.get(), way.Seal("header")));
  for (int i = 0; i < kRecords; ++i) ASSERT_TRUE(WriteAll(pair.a.get(), way.Seal(std::string(kLong, 'x'))));
  const auto unread = [fd] {
    int bytes = 0;
    return ioctl(fd, FIONREAD, &bytes) == 0 ? static_cast<size_t>(bytes) : 0;
  };
  const Deadline deadline(60);
  while (unread() < kRecords * kLong) ASSERT_TRUE(deadline.Yield());
  EXPECT_EQ("header", Receive(&intake, fd, 10, 0));
  EXPECT_GT(unread(), (kRecords - 1) * kLong);
  EXPECT_EQ(10u, Receive(&intake, fd, 10, 0).size());
  EXPECT_GT(unread(), (kRecords - 2) * kLong);
  EXPECT_TRUE(intake.holds());
  std::string rest(kRecords * kLong, ' ');
  for (size_t got = 10; got < rest.size();) {
    iovec place{&rest[got], rest.size() - got};
    const ssize_t more = intake.Receive(fd, &place, 1);
    ASSERT_GT(more, 0);
    got += static_cast<size_t>(more);
  }
  EXPECT_EQ(rest.substr(10), std::string(rest.size() - 10, 'x'));
  EXPECT_FALSE(intake.holds());
}

TEST(StreamIntakeTest, OpensAllThatFits) {
  TcpPair pair = MakeTcpPair();
  SealedWay way(1);
  StreamIntake intake;
  intake.OpenBy(std::move(way.opener));
  std::string sealed;
  for (const char* text : {"ab", "cd", "ef", "ghi", "j", "klmno", "pq"}) sealed += way.Seal(text);
  ASSERT_TRUE(WriteAll(pair.a.get(), sealed));
  EXPECT_EQ("abcdef", Receive(&intake, pair.b.get(), 4, 2));
  EXPECT_EQ("ghi", Receive(&intake, pair.b.get(), 3, 0));
  EXPECT_EQ("j", Receive(&intake, pair.b.get(), 3, 3));
  EXPECT_EQ("klm", Receive(&intake, pair.b.get(), 2, 1));
  EXPECT_EQ("no", Receive(&intake, pair.b.get(), 9, 9));
  EXPECT_EQ("pq", Receive(&intake, pair.b.get(), 0, 9));
  EXPECT_EQ(17u, intake.taken());
}

// A lane that has let its socket go and has no keys: nobody is taken for its peer.
TEST(StreamIntakeTest, TakesNothingInTheClearOnceItsKeysAreGone) {
  SealedWay way(1);
  StreamIntake intake;
  intake.OpenBy(std::move(way.opener));
  intake.Forget();
  EXPECT_TRUE(intake.sealed());
  EXPECT_FALSE(intake.holds());
  TcpPair silent = MakeTcpPair();
  EXPECT_TRUE(intake.Freeze(silent.b.get()));
  TcpPair bare = MakeTcpPair();
  ASSERT_TRUE(WriteAll(bare.a.get(), "in the clear"));
  EXPECT_EQ("nothing", Receive(&intake, bare.b.get(), 20, 20));
  EXPECT_EQ(EBADMSG, errno);
  EXPECT_FALSE(intake.Freeze(bare.b.get()));
  EXPECT_EQ(0u, intake.taken());
  SealedWay next(2);
  intake.OpenBy(std::move(next.opener));
  TcpPair sealed = MakeTcpPair();
  ASSERT_TRUE(WriteAll(sealed.a.get(), next.Seal("sealed")));
  EXPECT_EQ("sealed", Receive(&intake, sealed.b.get(), 20, 20));
}

// Who changes what passes and resets the socket then is heard of, however late the lane reads.
TEST(StreamIntakeTest, TellsOfWhatWasChangedBeforeTheSocketWasLetGo) {
  TcpPair pair = MakeTcpPair();
  SealedWay way(1);
  StreamIntake intake;
  intake.OpenBy(std::move(way.opener));
  const std::string good = way.Seal("good");
  std::string bad = way.Seal("bad");
  bad.back() ^= 1;
  ASSERT_TRUE(WriteAll(pair.a.get(), good + bad));
  EXPECT_FALSE(intake.Freeze(pair.b.get()));
  EXPECT_EQ(4u, intake.taken());
}

}  // namespace
}  // namespace tcpx
