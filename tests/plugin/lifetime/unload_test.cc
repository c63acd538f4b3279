// NCCL 2.28 and later closes a plugin's library with the last communicator and opens it again for the next one. What
// the plugin leaves then is a leak at best, and a jump into unmapped pages at worst.
#include <gtest/gtest.h>
#include <malloc.h>
#include <stdlib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "nccl/net_tables.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/seed.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

// The newest table gets the most lives: the older ones share its teardown.
constexpr int kCycles = kSanitized ? 20 : 100;
constexpr int kCyclesOfOlder = kSanitized ? 4 : 20;
// Thread stacks and arenas that glibc keeps for the next thread are there by then.
constexpr int kWarmCycles = 9;
// The log that this process records grows by less than that in a life.
constexpr size_t kHeapOfOneLife = 16 << 10;

constexpr Stream::Shape kBulk = {300000, 4, 8, true};
constexpr Stream::Shape kExpress = {1000, 4, 8, true};

void OneLife(int version) {
  Rank rank(version);
  const Ends ends = rank.ConnectToSelf();
  Transfer(&rank.net(), ends, kExpress);
  Transfer(&rank.net(), ends, kBulk);
  rank.Close(ends);
  rank.Finalize();
  rank.Unload();
}

// What an aborted set-up leaves: nobody closes the listen comm, nobody polls the connect again.
void HalfOpenLife(int version) {
  Rank rank(version);
  char handle[kHandleBytesMax] = {};
  rank.Listen(handle);
  const FakeAcceptor silent;  // Its kernel accepts.
  silent.WriteHandle(handle);
  void* send = nullptr;
  for (int i = 0; i < 5; ++i) {
    TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handle, &send) == ncclSuccess && send == nullptr, LogText());
    absl::SleepFor(absl::Milliseconds(2));
  }
  rank.Finalize();
  rank.Unload();
}

struct Belongings {
  int threads = ThreadCountAtRest();
  std::string descriptors = Joined(OpenDescriptors());
  int mappings = MappingCount();
};

void RequireGone(const Belongings& before) {
  TCPX_REQUIRE(SettlesAtThreads(before.threads), ThreadCount(), " threads, ", before.threads, " before");
  const std::string descriptors = Joined(OpenDescriptors());
  TCPX_REQUIRE(descriptors == before.descriptors, "\n", descriptors, "\nbefore:\n", before.descriptors);
  TCPX_REQUIRE(PluginMappings().empty(), "\n", Joined(PluginMappings()));
}

void LiveAndDie(int version) {
  const int cycles = version == kNewestNetVersion ? kCycles : kCyclesOfOlder;
  mallopt(M_ARENA_MAX, 1);  // Else which threads share an arena is chance, and so is the number of mappings.
  const Belongings before;
  int warm_mappings = 0;
  size_t warm_heap = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    if (cycle == cycles / 2) {
      HalfOpenLife(version);
    } else {
      OneLife(version);
    }
    RequireGone(before);
    if (cycle != kWarmCycles) continue;
    warm_mappings = MappingCount();
    warm_heap = HeapBytes();
  }
  // A sanitizer maps memory for each library and thread, and keeps it. The allocator may cut or join a few; a mapping
  // per life would make ninety.
  if (!kSanitized) {
    TCPX_REQUIRE(MappingCount() <= warm_mappings + 10, MappingCount(), " mappings, ", warm_mappings, " before");
    const size_t heap = HeapBytes();
    TCPX_REQUIRE(heap < warm_heap + (cycles - kWarmCycles) * kHeapOfOneLife, heap, " bytes, ", warm_heap, " before");
  }
  TCPX_REQUIRE(WarningCount() == 0, LogText());
}

class UnloadTest : public ModeTest {};

TEST_P(UnloadTest, Gotcha11_NothingIsLeftOfAHundredLives) {
  for (int version = kOldestNetVersion; version <= kNewestNetVersion; ++version) {
    EXPECT_EQ("", RunAlone([version] { LiveAndDie(version); })) << "v" << version;
  }
}

// glibc runs a thread's destructors when it ends: one that the library had left would be called in unmapped pages.
TEST_P(UnloadTest, ThreadThatContendedInsideEndsAfterTheUnload) {
  EXPECT_EQ("", RunAlone([] {
              constexpr int kThreads = 4;
              const Belongings before;
              auto rank = std::make_unique<Rank>();
              const Ends ends = rank->ConnectToSelf();
              std::atomic<int> finished{0};
              std::atomic<bool> unloaded{false};
              const auto contend = [&] {
                std::vector<char> memory(4096);
                for (int i = 0; i < 300; ++i) {
                  void* handle = nullptr;
                  TCPX_REQUIRE(rank->net().RegMr(ends.receive, memory.data(), memory.size(), NCCL_PTR_HOST, &handle) ==
                               ncclSuccess);
                  TCPX_REQUIRE(rank->net().DeregMr(ends.receive, handle) == ncclSuccess);
                  char listen_handle[kHandleBytesMax] = {};
                  void* const listen = rank->Listen(listen_handle);
                  rank->CloseListen(listen);
                }
                finished.fetch_add(1);
                while (!unloaded.load()) absl::SleepFor(absl::Milliseconds(1));
              };
              std::vector<std::thread> threads;
              for (int i = 0; i < kThreads; ++i) threads.emplace_back(contend);
              while (finished.load() < kThreads) {
                Transfer(&rank->net(), ends, kExpress);
                Transfer(&rank->net(), ends, kBulk);
              }
              rank->Close(ends);
              rank->Finalize();
              rank.reset();
              TCPX_REQUIRE(PluginMappings().empty(), "\n", Joined(PluginMappings()));
              unloaded.store(true);
              for (std::thread& thread : threads) thread.join();
              RequireGone(before);
            }));
}

// Looking at the devices is all that NCCL does with a plugin that it then does not choose.
TEST_P(UnloadTest, Gotcha16_InitAndDevicesStartNothing) {
  EXPECT_EQ("", RunAlone([] {
              const int threads = ThreadCountAtRest();
              const std::string descriptors = Joined(OpenDescriptors());
              Rank rank;
              ncclNetProperties_v12_t properties;
              TCPX_REQUIRE(rank.net().GetProperties(0, &properties) == ncclSuccess);
              TCPX_REQUIRE(ThreadCount() == threads, ThreadCount());
              TCPX_REQUIRE(Joined(OpenDescriptors()) == descriptors, "\n", Joined(OpenDescriptors()));
              rank.Finalize();
              rank.Unload();
              TCPX_REQUIRE(PluginMappings().empty());
            }));
}

TEST_P(UnloadTest, Gotcha10_SecondInitAfterFinalize) {
  for (int version = kOldestNetVersion; version <= kNewestNetVersion; ++version) {
    EXPECT_EQ("", RunAlone([version] {
                const int threads = ThreadCountAtRest();
                Rank rank(version);
                for (int life = 0; life < 3; ++life) {
                  void* context = life == 0 ? rank.context() : rank.NewContext();
                  const Ends ends = rank.ConnectToSelf(context);
                  Transfer(&rank.net(), ends, kBulk);
                  rank.Close(ends);
                  TCPX_REQUIRE(rank.net().Finalize(context) == ncclSuccess);
                  // With a finalize nothing is left after it; without one, nothing soon after the last comm.
                  TCPX_REQUIRE(SettlesAtThreads(threads), ThreadCount(), " threads");
                }
              }))
        << "v" << version;
  }
}

// The threads are the process's: a context that goes must not take them from the other.
void FinalizeOneOfTwo(bool first_goes) {
  const int threads = ThreadCountAtRest();
  Rank rank;
  void* const second = rank.NewContext();
  TCPX_REQUIRE(second != rank.context());
  const Ends of_first = rank.ConnectToSelf();
  const Ends of_second = rank.ConnectToSelf(second);
  const Ends& going = first_goes ? of_first : of_second;
  const Ends& staying = first_goes ? of_second : of_first;
  void* const leaves = first_goes ? rank.context() : second;
  void* const stays = first_goes ? second : rank.context();
  Transfer(&rank.net(), going, kBulk);
  BothWays streams(&rank.net(), staying, {300000, 16, 200, true});
  std::thread destroyer([&] {
    rank.Close(going);
    TCPX_REQUIRE(rank.net().Finalize(leaves) == ncclSuccess);
  });
  streams.Finish();
  destroyer.join();
  Transfer(&rank.net(), staying, kBulk);
  rank.Close(rank.ConnectToSelf(stays));
  streams.Deregister();
  rank.Close(staying);
  TCPX_REQUIRE(rank.net().Finalize(stays) == ncclSuccess);
  TCPX_REQUIRE(SettlesAtThreads(threads), ThreadCount(), " threads");
  TCPX_REQUIRE(WarningCount() == 0, LogText());
}

TEST_P(UnloadTest, TwoContextsFirstGoesFirst) {
  EXPECT_EQ("", RunAlone([] { FinalizeOneOfTwo(true); }));
}

TEST_P(UnloadTest, TwoContextsSecondGoesFirst) {
  EXPECT_EQ("", RunAlone([] { FinalizeOneOfTwo(false); }));
}

INSTANTIATE_TEST_SUITE_P(Modes, UnloadTest, ::testing::ValuesIn(AllModes({4})), ShortModeName);

}  // namespace
}  // namespace tcpx
