#include "common/one_line.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

// The code point of a character of 1 to 4 bytes.
uint32_t CodePoint(absl::string_view character) {
  const auto head = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return head;
  uint32_t point = head & (0xffu >> (character.size() + 1));
  for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return point;
}

bool IsHarmless(uint32_t point) {
  if (point < 0x80) return point >= 0x20 && point != 0x7f;
  const auto within = [point](uint32_t first, uint32_t last) { return first <= point && point <= last; };
  return !within(0x80, 0x9f) && point != 0xad && point != 0x61c && !within(0x200b, 0x200f) && !within(0x2028, 0x202e) &&
         !within(0x2060, 0x206f) && point != 0xfeff && !within(0xfff9, 0xfffb) && !within(0xe0000, 0xe0fff);
}

}  // namespace

size_t CharacterBytes(absl::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned head = at(0);
  if (head < 0x80) return 1;
  if (head < 0xc2 || head > 0xf4) return 0;
  // The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF.
  const unsigned low = head == 0xe0 ? 0xa0 : head == 0xf0 ? 0x90 : 0x80;
  const unsigned high = head == 0xed ? 0x9f : head == 0xf4 ? 0x8f : 0xbf;
  if (at(1) < low || at(1) > high) return 0;
  const size_t bytes = head < 0xe0 ? 2 : head < 0xf0 ? 3 : 4;
  for (size_t i = 2; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

std::string OneLine(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const absl::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes > 0 && IsHarmless(CodePoint(character))) {
      out.append(character.data(), character.size());
    } else {
      for (const char c : character) {
        absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
      }
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace tcpx
