// test_main.cc: main of the tests: each case begins with the environment that the program began with.
//
// Purpose: cases of several files share a process, in any order, and most set variables that the next one must not see.
//          With TCPX_TEST_IN_OWN_NETWORK the program runs in a network namespace of its own (own_network.h).
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <string>

#ifdef TCPX_TEST_IN_OWN_NETWORK
#include "tests/support/own_network.h"
#endif

namespace {

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

class EnvironmentKeeper : public testing::EmptyTestEventListener {
 private:
  void OnTestStart(const testing::TestInfo&) override { before_ = Environment(); }

  void OnTestEnd(const testing::TestInfo&) override {
    const std::map<std::string, std::string> after = Environment();
    for (const auto& [name, value] : after) {
      if (before_.count(name) == 0) unsetenv(name.c_str());
    }
    for (const auto& [name, value] : before_) {
      const auto now = after.find(name);
      if (now == after.end() || now->second != value) setenv(name.c_str(), value.c_str(), 1);
    }
  }

  std::map<std::string, std::string> before_;
};

}  // namespace

int main(int argc, char** argv) {
#ifdef TCPX_TEST_IN_OWN_NETWORK
  tcpx::EnterOwnNetwork(argv);
#endif
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new EnvironmentKeeper);
  return RUN_ALL_TESTS();
}
