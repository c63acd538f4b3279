#include "bench/nccl_bench/rendezvous.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// What healthy ranks get: far more than they need, on any machine, and less than the test's own limit.
constexpr int kPatience = 30;

Job JobOf(int rank, int size, int port) {
  Job job;
  job.rank = rank;
  job.size = size;
  job.master_host = "127.0.0.1";
  job.master_port = port;
  return job;
}

Listener Listen() {
  absl::StatusOr<Listener> listener = ListenForRanks(0);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return listener.ok() ? std::move(*listener) : Listener();
}

using Body = std::function<absl::Status(int rank, Rendezvous* rendezvous)>;

// Each rank on a thread of its own; returns what each ended with.
std::vector<absl::Status> RunRanks(int size, const Body& body) {
  Listener listener = Listen();
  const int port = listener.port;
  std::vector<absl::Status> results(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      OwnedFd fd = rank == 0 ? std::move(listener.fd) : OwnedFd();
      auto met = Rendezvous::Meet(JobOf(rank, size, port), kPatience, std::move(fd));
      results[static_cast<size_t>(rank)] = met.ok() ? body(rank, met->get()) : met.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

OwnedFd DialRaw(int port) {
  OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(Rendezvous, SharesTheIdAndSums) {
  constexpr int kSize = 5;
  const auto results = RunRanks(kSize, [](int rank, Rendezvous* rendezvous) {
    for (int round = 0; round < 10; ++round) {
      std::string id(128, rank == 0 ? static_cast<char>('a' + round) : '?');
      if (absl::Status status = rendezvous->Broadcast(&id[0], id.size()); !status.ok()) return status;
      if (id != std::string(128, static_cast<char>('a' + round))) return absl::DataLossError("the id");
      std::vector<double> values = {static_cast<double>(rank), 1};
      if (absl::Status status = rendezvous->Sum(&values); !status.ok()) return status;
      if (values != std::vector<double>{10, kSize}) return absl::DataLossError("the sums");
    }
    return rendezvous->Barrier();
  });
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
}

TEST(Rendezvous, OneRankMeetsItself) {
  auto met = Rendezvous::Meet(JobOf(0, 1, 0), kPatience);
  ASSERT_TRUE(met.ok()) << met.status();
  EXPECT_TRUE((*met)->Barrier().ok());
}

TEST(Rendezvous, ARankThatDoesNotComeIsMissed) {
  auto met = Rendezvous::Meet(JobOf(0, 3, 0), 1, std::move(Listen().fd));
  EXPECT_EQ(met.status().code(), absl::StatusCode::kDeadlineExceeded) << met.status();
  EXPECT_NE(met.status().message().find("only 1 of 3 ranks came"), absl::string_view::npos) << met.status();
}

TEST(Rendezvous, ARankZeroThatDoesNotListenIsMissed) {
  const int port = Listen().port;  // Closed at once.
  auto met = Rendezvous::Meet(JobOf(1, 2, port), 1);
  EXPECT_FALSE(met.ok());
  EXPECT_NE(met.status().message().find("127.0.0.1"), absl::string_view::npos) << met.status();
}

// The listener of a rank 0 that never accepts: connected, and then silence.
TEST(Rendezvous, ARankZeroThatIsSilentIsMissed) {
  const Listener listener = Listen();
  auto met = Rendezvous::Meet(JobOf(1, 2, listener.port), 1);
  EXPECT_EQ(met.status().code(), absl::StatusCode::kDeadlineExceeded) << met.status();
}

TEST(Rendezvous, ADeadRankEndsTheWait) {
  const auto results = RunRanks(
      3, [](int rank, Rendezvous* rendezvous) { return rank == 2 ? absl::OkStatus() : rendezvous->Barrier(); });
  EXPECT_EQ(results[0].code(), absl::StatusCode::kUnavailable) << results[0];
  EXPECT_NE(results[0].message().find("rank 2"), absl::string_view::npos) << results[0];
  EXPECT_FALSE(results[1].ok());
}

TEST(Rendezvous, StrangersDisturbNobody) {
  Listener listener = Listen();
  const int port = listener.port;
  OwnedFd silent = DialRaw(port);
  OwnedFd garbage = DialRaw(port);
  ASSERT_EQ(send(garbage.get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  DialRaw(port).reset();
  absl::Status other;
  std::thread rank1([&] { other = Rendezvous::Meet(JobOf(1, 2, port), kPatience).status(); });
  auto met = Rendezvous::Meet(JobOf(0, 2, port), kPatience, std::move(listener.fd));
  rank1.join();
  EXPECT_TRUE(met.ok()) << met.status();
  EXPECT_TRUE(other.ok()) << other;
}

// A rank whose hello was slow is dropped like a stranger, and comes again.
TEST(Rendezvous, ARankThatIsDroppedComesAgain) {
  Listener listener = Listen();
  const int port = listener.port;
  absl::Status other;
  std::thread rank1([&] { other = Rendezvous::Meet(JobOf(1, 2, port), kPatience).status(); });
  OwnedFd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  auto met = Rendezvous::Meet(JobOf(0, 2, port), kPatience, std::move(listener.fd));
  rank1.join();
  EXPECT_TRUE(met.ok()) << met.status();
  EXPECT_TRUE(other.ok()) << other;
}

TEST(Rendezvous, ARankOfAnotherJobIsRefusedByName) {
  Listener listener = Listen();
  const int port = listener.port;
  absl::Status other;
  std::thread rank1([&] { other = Rendezvous::Meet(JobOf(1, 4, port), kPatience).status(); });
  auto met = Rendezvous::Meet(JobOf(0, 2, port), kPatience, std::move(listener.fd));
  rank1.join();
  EXPECT_EQ(met.status().code(), absl::StatusCode::kInvalidArgument) << met.status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument) << other;
}

TEST(Rendezvous, TheSameRankTwiceIsRefused) {
  Listener listener = Listen();
  const int port = listener.port;
  std::vector<absl::Status> others(2);
  std::vector<std::thread> threads;
  for (absl::Status& other : others) {
    threads.emplace_back([&other, port] { other = Rendezvous::Meet(JobOf(1, 3, port), kPatience).status(); });
  }
  auto met = Rendezvous::Meet(JobOf(0, 3, port), kPatience, std::move(listener.fd));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met.status().code(), absl::StatusCode::kInvalidArgument) << met.status();
  EXPECT_NE(others[0].ok(), others[1].ok());
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
