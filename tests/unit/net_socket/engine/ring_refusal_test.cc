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

TEST(RingRefusalTest, AForbiddenRingNamesSysctlAndProfile) {
  EXPECT_TRUE(Has(Text(EPERM), "kernel.io_uring_disabled")) << Text(EPERM);
  EXPECT_TRUE(Has(Text(EPERM), "seccomp")) << Text(EPERM);
  EXPECT_TRUE(Has(Text(ENOSYS), "seccomp")) << Text(ENOSYS);
}

}  // namespace
}  // namespace tcpx
