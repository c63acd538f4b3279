// fips_mode.h: runs a part of a test with libgcrypt in FIPS mode, which refuses some of its ciphers.
//
// Threads: one. In a process of its own: libgcrypt reads the variable when it is loaded.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <functional>

#include "net_socket/seal/cipher_suites.h"

namespace tcpx {

// `body` is to return true, and no expectation of it to fail. False: there is no libgcrypt here that honours
// LIBGCRYPT_FORCE_FIPS_MODE, and nothing ran.
inline bool RunsInFipsMode(const std::function<bool()>& body) {
  constexpr int kNotHonoured = 77;
  EXPECT_EQ(0, setenv("LIBGCRYPT_FORCE_FIPS_MODE", "1", 1));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int code = -1;
  const auto as_wanted = [&code](int status) {
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == 0 || code == kNotHonoured;
  };
  EXPECT_EXIT(
      {
        if (!GcryptIsFips()) exit(kNotHonoured);
        exit(body() && !testing::Test::HasFailure() ? 0 : 1);
      },
      as_wanted, "");
  EXPECT_EQ(0, unsetenv("LIBGCRYPT_FORCE_FIPS_MODE"));
  return code != kNotHonoured;
}

}  // namespace tcpx
