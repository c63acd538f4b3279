#include "common/one_line.h"

#include <string>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

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

}  // namespace
}  // namespace tcpx
