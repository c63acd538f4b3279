// Where keys are: what the kernel says of their pages, and what a forked child finds there.
#include "net_socket/seal/key_memory.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/key_schedule.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

// The kernel's flags of the mapping that holds the address: " lo": locked, " dd": not dumped, " wf": wiped by a fork.
std::string FlagsOf(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool here = false;
  while (std::getline(maps, line)) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < end;
    }
    if (here && absl::StartsWith(line, "VmFlags:")) return line;
  }
  return "";
}

// What a forked child says of it.
bool InChild(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(KeyMemoryTest, IsLockedAndNotDumpedAndWipedByAFork) {
  Key32 key;
  std::memset(key.data(), 7, Key32::size());
  const KeyPages pages(5000);
  pages.data()[4999] = 7;
  for (const void* at : {static_cast<const void*>(key.data()), static_cast<const void*>(pages.data() + 4999)}) {
    const std::string flags = FlagsOf(at);
    EXPECT_TRUE(absl::StrContains(flags, " dd")) << flags;
    EXPECT_TRUE(absl::StrContains(flags, " wf")) << flags;
    EXPECT_EQ(KeysAreLocked(), absl::StrContains(flags, " lo")) << flags;
  }
  EXPECT_TRUE(InChild([&] { return key.data()[0] == 0 && pages.data()[4999] == 0; }));
  EXPECT_EQ(7, key.data()[0]);
}

// The first key that the limit forbids to lock is logged, and no other.
TEST(KeyMemoryTest, WhatCantBeLockedIsReportedOnce) {
  const auto without = [] {
    const Key32 early;  // As the secret: while there was room.
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return false;
    // Root may lock without a limit. In a namespace without another user, root has no such right.
    constexpr uid_t kNobody = 65534;
    const bool other = setresuid(kNobody, kNobody, kNobody) == 0;
    if (!other && errno != EINVAL && geteuid() == 0) return false;
    static int told = 0;
    SetLogSink([](LogLevel, uint64_t, const char*, int, const char* text) {
      if (absl::StrContains(text, "can't be locked in memory")) ++told;
    });
    const KeyPages first(1);
    const KeyPages second(1);
    return told == 1 && !KeysAreLocked();
  };
  if (!KeysAreLocked()) GTEST_SKIP() << "nothing can be locked here";
  EXPECT_TRUE(InChild(without));
}

TEST(KeyMemoryTest, EachHasAPlaceOfItsOwnWhichIsWiped) {
  std::set<const uint8_t*> places;
  std::vector<std::unique_ptr<Key32>> keys;
  for (int i = 0; i < 1000; ++i) {
    keys.push_back(std::make_unique<Key32>());
    EXPECT_EQ(std::string(Key32::size(), '\0'), keys.back()->view());
    std::memset(keys.back()->data(), i | 1, Key32::size());
    EXPECT_TRUE(places.insert(keys.back()->data()).second);
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(static_cast<uint8_t>(i | 1), keys[static_cast<size_t>(i)]->data()[31]);
  for (size_t i = 0; i < keys.size(); i += 2) keys[i] = nullptr;
  Key32 next;
  EXPECT_EQ(std::string(Key32::size(), '\0'), next.view());
}

TEST(KeyMemoryTest, CopiesAreEqualAndApart) {
  Key32 key;
  std::memset(key.data(), 3, Key32::size());
  Key32 copy(key);
  EXPECT_EQ(key.view(), copy.view());
  std::memset(copy.data(), 4, Key32::size());
  EXPECT_EQ(3, key.data()[0]);
  key = copy;
  EXPECT_EQ(key.view(), copy.view());
}

// Its round keys are on the heap, and a child has a copy of that.
TEST(KeyMemoryTest, OfTheCiphersKeyAForkedChildHasZeros) {
  uint8_t key[32];
  std::memset(key, 5, sizeof(key));
  for (int suite = 0; suite < kCipherSuites; ++suite) {
    const std::unique_ptr<Aead> aead = MakeGcryptAead(static_cast<CipherSuite>(suite), key);
    if (aead == nullptr) continue;
    const auto seal = [](Aead* by) {
      std::string text = std::string(32, 'x') + std::string(kTagBytes, ' ');
      EXPECT_TRUE(by->Seal(AeadNonce(), "", 0, text.data(), 32, &text[0]));
      return text;
    };
    const std::string sealed = seal(aead.get());
    EXPECT_TRUE(InChild([&] { return seal(aead.get()) != sealed; })) << SuiteName(static_cast<CipherSuite>(suite));
    EXPECT_EQ(sealed, seal(aead.get()));
  }
}

}  // namespace
}  // namespace tcpx
