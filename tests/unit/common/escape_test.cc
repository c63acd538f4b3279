#include "common/escape.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

constexpr char kNoCharacter[] = "\xef\xbf\xbd";

TEST(OneLineTest, WhatCanBeShownStays) {
  for (const char* text : {"", "node7 pid 4711 (rank 3)", "back\\slash", "grün", "日本語", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(text, OneLine(text));
  }
}

TEST(OneLineTest, WhatATerminalActsOnIsEscaped) {
  const struct {
    std::string text;
    const char* shown;
  } cases[] = {
      {"a\nb\r\t", "a\\x0ab\\x0d\\x09"},
      {std::string("\x1b[2J\0\x7f", 6), "\\x1b[2J\\x00\\x7f"},
      {"\xc2\x9b\x32J", "\\xc2\\x9b2J"},  // CSI, of one character
      {"\xe2\x80\xae"
       "gpj.exe",
       "\\xe2\\x80\\xaegpj.exe"},  // from right to left
      {"a\xe2\x80\xa8"
       "b",
       "a\\xe2\\x80\\xa8"
       "b"},  // a new line
      {"a\xe2\x80\x8b"
       "b",
       "a\\xe2\\x80\\x8b"
       "b"},  // nothing, and there
      {"\xff\xc0\x80\xed\xa0\x80", "\\xff\\xc0\\x80\\xed\\xa0\\x80"},
      {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
  };
  for (const auto& one : cases) EXPECT_EQ(one.shown, OneLine(one.text));
}

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
