#include "net_socket/receive/forward_copy.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace tcpx {
namespace {

constexpr size_t kPage = 4096;

TEST(ForwardCopyTest, EveryAlignmentAndLength) {
  char from[400], to[400];
  for (size_t i = 0; i < sizeof(from); ++i) from[i] = static_cast<char>(i * 7 + 1);
  for (size_t to_at = 0; to_at < 17; ++to_at) {
    for (size_t from_at = 0; from_at < 17; from_at += to_at % 3 + 1) {
      for (size_t bytes = 0; bytes <= 300; ++bytes) {
        std::memset(to, '#', sizeof(to));
        ForwardCopy(to + 20 + to_at, from + from_at, bytes);
        ASSERT_EQ(0, std::memcmp(to + 20 + to_at, from + from_at, bytes)) << to_at << " " << from_at << " " << bytes;
        for (size_t i = 0; i < 20 + to_at; ++i) ASSERT_EQ('#', to[i]) << "before";
        for (size_t i = 20 + to_at + bytes; i < sizeof(to); ++i) ASSERT_EQ('#', to[i]) << "after";
      }
    }
  }
}

TEST(ForwardCopyTest, Large) {
  std::vector<char> from(1 << 20), to(1 << 20);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 256);
  ForwardCopy(to.data() + 1, from.data(), from.size() - 1);
  EXPECT_EQ(0, std::memcmp(to.data() + 1, from.data(), from.size() - 1));
  EXPECT_EQ(0, to[0]);
}

TEST(ForwardCopyTest, NothingFromNowhere) { ForwardCopy(nullptr, nullptr, 0); }

// The page that a copy runs into, and what the copy had stored by then.
struct Fence {
  char* page = nullptr;
  const char* begin = nullptr;  // of the destination, before the page
  const char* from = nullptr;
  bool hit = false;
  bool all_before = false;
};
Fence fence;

void OnFence(int, siginfo_t*, void*) {
  // Nothing but a store after the fence comes here; everything before it has to be there already.
  fence.hit = true;
  fence.all_before = std::equal(fence.begin, static_cast<const char*>(fence.page), fence.from);
  mprotect(fence.page, kPage, PROT_READ | PROT_WRITE);
}

// For every length, and every place in it: no byte from there on is stored before all bytes in front of it are.
TEST(ForwardCopyTest, Gotcha18_StoresInAscendingOrder) {
  char* pages =
      static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, pages);
  struct sigaction action {
  }, before{};
  action.sa_sigaction = &OnFence;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(0, sigaction(SIGSEGV, &action, &before));
  char from[300];
  for (size_t i = 0; i < sizeof(from); ++i) from[i] = static_cast<char>(i % 200 + 1);
  for (size_t bytes = 1; bytes <= sizeof(from) && !HasFailure(); bytes += bytes < 80 ? 1 : 11) {
    for (size_t in_front = 0; in_front < bytes; ++in_front) {
      std::memset(pages, 0, 2 * kPage);
      fence = {pages + kPage, pages + kPage - in_front, from, false, false};
      mprotect(fence.page, kPage, PROT_NONE);
      ForwardCopy(pages + kPage - in_front, from, bytes);
      EXPECT_TRUE(fence.hit && fence.all_before) << in_front << " of " << bytes;
      EXPECT_EQ(0, std::memcmp(fence.begin, from, bytes));
    }
  }
  sigaction(SIGSEGV, &before, nullptr);
  munmap(pages, 2 * kPage);
}

// As NCCL's LL protocol reads: lines of 8 bytes, data and flag, polled by another thread while they are written.
// A reader that sees a later line of this round sees every earlier one too, and each line whole.
TEST(ForwardCopyTest, AscendsUnderAPollingReader) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the race is the point here, and the thread sanitizer would report it";
#endif
  constexpr size_t kLines = 8193;  // no multiple of the copy's step
  constexpr uint32_t kRounds = 500;
  alignas(128) static uint64_t to[kLines + 1];
  std::vector<uint64_t> from(kLines + 1);
  std::atomic<uint32_t> read_round{0};
  std::atomic<bool> wrong{false};
  const auto see = [](size_t line) { return __atomic_load_n(&to[line], __ATOMIC_ACQUIRE); };
  std::thread reader([&] {
    for (uint32_t round = 1; round <= kRounds && !wrong.load(); ++round) {
      const uint64_t expected = uint64_t{round} << 32 | round;
      size_t line = round % 4 == 0 ? 1 + round * 37 % kLines : kLines;
#if !defined(__x86_64__)
      line = (std::max<size_t>(line, 16) - 15) | 15;  // Only the last word of 128 bytes is in order.
#endif
      for (uint64_t seen = see(line); seen != expected && !wrong.load(); seen = see(line)) {
        if (static_cast<uint32_t>(seen) != static_cast<uint32_t>(seen >> 32)) wrong.store(true);
      }
      while (line-- > 1) {
        if (see(line) != expected) wrong.store(true);
      }
      read_round.store(round);
    }
  });
  for (uint32_t round = 1; round <= kRounds && !wrong.load(); ++round) {
    for (uint64_t& line : from) line = uint64_t{round} << 32 | round;
    ForwardCopy(reinterpret_cast<char*>(&to[1]), reinterpret_cast<const char*>(&from[1]), kLines * 8);
    while (read_round.load() < round && !wrong.load()) std::this_thread::yield();
  }
  reader.join();
  EXPECT_FALSE(wrong.load()) << "a line was visible before an earlier one, or in halves";
}

}  // namespace
}  // namespace tcpx
