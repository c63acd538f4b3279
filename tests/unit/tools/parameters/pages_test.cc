#include "tools/parameters/pages.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "common/params.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(ParametersDocTest, TheCheckedInPageIsTheGeneratedOne) {
  std::ifstream file("docs/parameters.md");
  ASSERT_TRUE(file.good()) << "docs/parameters.md is not among the test's data";
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), ParametersMarkdown())
      << "stale; run: bazel run //tools/parameters:write_page > docs/parameters.md";
}

TEST(ParametersDocTest, NamesAreUniqueAndEveryParameterIsExplained) {
  std::set<std::string> names;
  for (const Parameter& parameter : Parameters()) {
    const std::string name = parameter.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.rfind("TCPX_", 0) == 0 || name.rfind("NCCL_", 0) == 0) << name;
    EXPECT_LE(parameter.range.min, parameter.range.max) << name;
    EXPECT_FALSE(std::string(parameter.help).empty()) << name;
    EXPECT_FALSE(std::string(parameter.brief).empty()) << name;
    EXPECT_EQ(parameter.kind == ParameterKind::kText, parameter.values != nullptr) << name;
    EXPECT_NE(ParametersMarkdown().find("\n### " + name + "\n"), std::string::npos) << name;
  }
}

// About ten each, so that nobody has to read the whole page.
TEST(ParametersDocTest, WhatUsersAndOperatorsNeedIsFewAndComesFirst) {
  const std::string page = ParametersMarkdown();
  const size_t operators = page.find("\n## What an operator may need\n");
  const size_t rest = page.find("\n## The rest\n");
  ASSERT_NE(page.npos, rest);
  int users = 0;
  int of_operators = 0;
  for (const Parameter& parameter : Parameters()) {
    const size_t section = page.find(std::string("\n### ") + parameter.name + "\n");
    const bool for_users = parameter.audience == Audience::kMost;
    const bool for_operators = parameter.audience == Audience::kOperator;
    EXPECT_EQ(for_users, section < operators) << parameter.name;
    EXPECT_EQ(for_operators, operators < section && section < rest) << parameter.name;
    users += for_users;
    of_operators += for_operators;
  }
  EXPECT_LE(8, users);
  EXPECT_GE(12, users);
  EXPECT_LE(8, of_operators);
  EXPECT_GE(12, of_operators);
}

// It would help nobody who sets a variable.
TEST(ParametersDocTest, NoTypeOfCppIsOnThePage) {
  const std::string page = ParametersMarkdown();
  for (const char* type : {"int64_t", "std::", "bool", "PortRange", "EngineChoice", "any text"}) {
    EXPECT_EQ(std::string::npos, page.find(type)) << type;
  }
}

}  // namespace
}  // namespace tcpx
