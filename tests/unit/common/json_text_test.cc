#include "common/json_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

constexpr char kNoCharacter[] = "\xef\xbf\xbd";

TEST(JsonTextTest, TextsAreQuoted) {
  EXPECT_EQ(JsonText("a\"b\\c\n"), R"("a\"b\\c\u000a")");
  EXPECT_EQ(JsonText(absl::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonTextTest, WhatIsUtf8Stays) {
  for (const char* text : {"", "world", "\x7f", "\xc2\x80", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x98\x80",
                           "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"}) {
    EXPECT_EQ(JsonText(text), absl::StrCat("\"", text, "\""));
  }
}

TEST(JsonTextTest, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(JsonText("a\xffz"), absl::StrCat("\"a", kNoCharacter, "z\""));
  // Cut, alone, too long for its value, a surrogate, above all there are.
  EXPECT_EQ(JsonText("\xc3"), absl::StrCat("\"", kNoCharacter, "\""));
  EXPECT_EQ(JsonText("\x80"), absl::StrCat("\"", kNoCharacter, "\""));
  EXPECT_EQ(JsonText("\xe2\x82z"), absl::StrCat("\"", kNoCharacter, kNoCharacter, "z\""));
  for (const char* text : {"\xc0\xaf", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_TRUE(absl::StartsWith(JsonText(text), absl::StrCat("\"", kNoCharacter))) << text;
  }
}

}  // namespace
}  // namespace tcpx
