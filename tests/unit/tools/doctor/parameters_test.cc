// tcpx_doctor --parameters.
#include "tools/doctor/parameters.h"

#include <stdlib.h>

#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/params.h"
#include "gtest/gtest.h"
#include "tests/support/json.h"

namespace tcpx {
namespace doctor {
namespace {

TEST(ParametersTest, EachHasItsValueAndWhereThatComesFrom) {
  setenv("TCPX_CHUNK_BYTES", "1MB", 1);
  setenv("TCPX_LINGER", "soon", 1);
  setenv("TCPX_HEAL", "no", 1);
  const std::string text = ParametersText({{"TCPX_HEAL", "/etc/nccl.conf"}});
  for (const char* part : {"\nTCPX_CHUNK_BYTES +1M +environment +Largest piece",
                           "\nTCPX_LINGER +5 s +default; not allowed: \"soon\" [(]environment[)]  ",
                           "\nTCPX_HEAL +off +/etc/nccl.conf ", "\nTCPX_ENGINE +auto +default "}) {
    EXPECT_TRUE(std::regex_search(text, std::regex(part))) << part << " in:\n" << text;
  }
  // Columns are as wide as what is in them.
  const size_t column = text.find("WHAT IT DOES");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    ASSERT_GT(line.size(), column) << line;
    EXPECT_EQ(line.substr(column - 2, 2), "  ") << line;
    EXPECT_NE(line[column], ' ') << line;
  }
  for (const Parameter& parameter : Parameters()) EXPECT_TRUE(absl::StrContains(text, parameter.name));
  for (const char* name : {"TCPX_CHUNK_BYTES", "TCPX_LINGER", "TCPX_HEAL"}) unsetenv(name);
}

TEST(ParametersTest, TheProductOfNcclsTwoIsNamed) {
  setenv("NCCL_SOCKET_NTHREADS", "2", 1);
  setenv("NCCL_NSOCKS_PERTHREAD", "4", 1);
  EXPECT_TRUE(std::regex_search(ParametersText({}), std::regex("\nTCPX_LANES +8 +NCCL_SOCKET_NTHREADS x")));
  unsetenv("NCCL_SOCKET_NTHREADS");
  unsetenv("NCCL_NSOCKS_PERTHREAD");
}

TEST(ParametersTest, JsonHasThemAll) {
  const std::string text = ParametersJson({}, "\"version\": \"0.1\"");
  Json json;
  std::string error;
  ASSERT_TRUE(ParseJson(text, &json, &error)) << error << "\n" << text;
  EXPECT_FALSE(absl::StrContains(text, "`")) << text;
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
