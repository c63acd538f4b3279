#include "common/json_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace {

constexpr absl::string_view kNoCharacter = "\xef\xbf\xbd";

// Bytes of the character that `text`, which is not empty, begins with (RFC 3629, section 4); 0: it is no UTF-8.
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

}  // namespace

std::string JsonText(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const char c = text[0];
    if (bytes == 0) {
      absl::StrAppend(&quoted, kNoCharacter);
    } else if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", text.substr(0, 1));
    } else if (bytes == 1 && c < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(c));
    } else {
      absl::StrAppend(&quoted, text.substr(0, bytes));
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  quoted.push_back('"');
  return quoted;
}

}  // namespace tcpx
