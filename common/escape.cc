#include "common/escape.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

constexpr uint32_t kPointMax = 0x10ffff;
constexpr uint32_t kNoPoint = ~uint32_t{0};
constexpr char kReplacement[] = "\xef\xbf\xbd";

// Cuts the first character off `*text`, which is not empty. *point: its code point; kNoPoint: it is a byte that is no
// UTF-8.
absl::string_view CutCharacter(absl::string_view* text, uint32_t* point) {
  const auto at = [text](size_t i) { return i < text->size() ? static_cast<unsigned char>((*text)[i]) : 0u; };
  const unsigned head = at(0);
  size_t bytes = head < 0x80 ? 1 : head < 0xe0 ? 2 : head < 0xf0 ? 3 : 4;
  bool valid = head < 0x80 || (head >= 0xc2 && head <= 0xf4);
  *point = bytes == 1 ? head : head & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    valid = valid && (at(i) & 0xc0) == 0x80;
    *point = *point << 6 | (at(i) & 0x3f);
  }
  const bool overlong = (bytes == 3 && *point < 0x800) || (bytes == 4 && *point < 0x10000);
  const bool surrogate = *point >= 0xd800 && *point <= 0xdfff;
  if (!valid || overlong || surrogate || *point > kPointMax) {
    *point = kNoPoint;
    bytes = 1;
  }
  const absl::string_view character = text->substr(0, bytes);
  text->remove_prefix(bytes);
  return character;
}

bool IsHarmless(uint32_t point) {
  if (point < 0x80) return point >= 0x20 && point != 0x7f;
  const auto within = [point](uint32_t first, uint32_t last) { return first <= point && point <= last; };
  return !within(0x80, 0x9f) && point != 0xad && point != 0x61c && !within(0x200b, 0x200f) && !within(0x2028, 0x202e) &&
         !within(0x2060, 0x206f) && point != 0xfeff && !within(0xfff9, 0xfffb) && !within(0xe0000, 0xe0fff) &&
         point <= kPointMax;
}

}  // namespace

std::string OneLine(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t point = 0;
    const absl::string_view character = CutCharacter(&text, &point);
    if (IsHarmless(point)) {
      absl::StrAppend(&out, character);
      continue;
    }
    for (const char c : character) absl::StrAppend(&out, "\\x", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
  }
  return out;
}

std::string JsonText(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    uint32_t point = 0;
    const absl::string_view character = CutCharacter(&text, &point);
    if (point < 0x20) {
      absl::StrAppend(&quoted, "\\u", absl::Hex(point, absl::kZeroPad4));
    } else {
      absl::StrAppend(&quoted, point == '"' || point == '\\' ? "\\" : "", point == kNoPoint ? kReplacement : character);
    }
  }
  quoted.push_back('"');
  return quoted;
}

}  // namespace tcpx
