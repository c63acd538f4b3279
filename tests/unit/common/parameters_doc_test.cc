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
  EXPECT_EQ(text.str(), ParametersMarkdown()) << "stale; run: bazel run //common:parameters_doc > docs/parameters.md";
}

TEST(ParametersDocTest, NamesAreUniqueAndEveryParameterIsExplained) {
  std::set<std::string> names;
  for (const Parameter& parameter : Parameters()) {
    const std::string name = parameter.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.rfind("TCPX_", 0) == 0 || name.rfind("NCCL_", 0) == 0) << name;
    EXPECT_LE(parameter.min, parameter.max) << name;
    EXPECT_FALSE(std::string(parameter.help).empty()) << name;
    EXPECT_NE(ParametersMarkdown().find("\n### " + name + "\n"), std::string::npos) << name;
  }
}

TEST(ParametersDocTest, WhatMostNeedComesFirstAndIsFew) {
  int most = 0;
  bool few_begun = false;
  for (const Parameter& parameter : Parameters()) {
    if (parameter.audience == Audience::kFew) few_begun = true;
    if (parameter.audience == Audience::kMost) {
      EXPECT_FALSE(few_begun) << parameter.name;
      ++most;
    }
  }
  EXPECT_LE(8, most);
  EXPECT_GE(12, most);
}

// Of no use to who sets a variable.
TEST(ParametersDocTest, NoTypeOfCppIsOnThePage) {
  const std::string page = ParametersMarkdown();
  for (const char* type : {"int64_t", "std::", "bool", "PortRange", "EngineChoice"}) {
    EXPECT_EQ(std::string::npos, page.find(type)) << type;
  }
}

}  // namespace
}  // namespace tcpx
