// What an operator reads where the kernel gives no ring.
#include "net_socket/engine/ring_refusal.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

namespace tcpx {
namespace {

std::string Text(int err) { return std::string(RingRefusal(err).message()); }

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RingRefusalTest, RefusedMemoryNamesTheLimitAndTheCure) {
  rlimit limit{};
  ASSERT_EQ(0, getrlimit(RLIMIT_MEMLOCK, &limit));
  const std::string now =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
  for (const std::string& part : {std::string("Cannot allocate memory (12)"), std::string("memlock, which is ") + now,
                                  std::string("ulimit -l")}) {
    EXPECT_TRUE(Has(Text(ENOMEM), part)) << part << " in: " << Text(ENOMEM);
  }
}

class OpenPatientlyTest : public ::testing::Test {
 protected:
  // Another test may have waited until the end.
  void SetUp() override {
    ASSERT_EQ(0, OpenPatiently([] { return 0; }));
  }
};

// As if the rings of a communicator that has just ended still had the memory.
TEST_F(OpenPatientlyTest, WaitsForMemoryThatIsGivenBack) {
  int calls = 0;
  EXPECT_EQ(0, OpenPatiently([&calls] { return ++calls < 4 ? -ENOMEM : 0; }));
  EXPECT_EQ(4, calls);
}

TEST_F(OpenPatientlyTest, WaitsForNothingElse) {
  int calls = 0;
  EXPECT_EQ(-EPERM, OpenPatiently([&calls] { return ++calls < 4 ? -EPERM : 0; }));
  EXPECT_EQ(1, calls);
}

TEST_F(OpenPatientlyTest, EndsWhereThatDoesNotCome) {
  int calls = 0;
  EXPECT_EQ(-ENOMEM, OpenPatiently(
                         [&calls] {
                           ++calls;
                           return -ENOMEM;
                         },
                         20'000'000));
  EXPECT_GT(calls, 1);
}

// As the progress threads of one rank, each of which asks for a ring.
TEST_F(OpenPatientlyTest, WaitsUntilTheEndOnce) {
  int calls = 0;
  const auto refuse = [&calls] {
    ++calls;
    return -ENOMEM;
  };
  EXPECT_EQ(-ENOMEM, OpenPatiently(refuse, 20'000'000));
  calls = 0;
  EXPECT_EQ(-ENOMEM, OpenPatiently(refuse));
  EXPECT_EQ(1, calls);
  EXPECT_EQ(0, OpenPatiently([] { return 0; }));
  calls = 0;
  EXPECT_EQ(0, OpenPatiently([&calls] { return ++calls < 4 ? -ENOMEM : 0; })) << "there was a ring since";
  EXPECT_EQ(4, calls);
}

TEST_F(OpenPatientlyTest, DoesNotWaitUnderALimitThatHoldsNoRing) {
  rlimit whole{};
  ASSERT_EQ(0, getrlimit(RLIMIT_MEMLOCK, &whole));
  rlimit small = whole;
  small.rlim_cur = 32 << 10;
  ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &small));
  int calls = 0;
  EXPECT_EQ(-ENOMEM, OpenPatiently([&calls] {
    ++calls;
    return -ENOMEM;
  }));
  EXPECT_EQ(1, calls);
  EXPECT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &whole));
}

TEST(RingRefusalTest, AForbiddenRingNamesSysctlAndProfile) {
  EXPECT_TRUE(Has(Text(EPERM), "kernel.io_uring_disabled")) << Text(EPERM);
  EXPECT_TRUE(Has(Text(EPERM), "seccomp")) << Text(EPERM);
  EXPECT_TRUE(Has(Text(ENOSYS), "seccomp")) << Text(ENOSYS);
}

}  // namespace
}  // namespace tcpx
