#include "common/json_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/one_line.h"

namespace tcpx {

constexpr absl::string_view kNoCharacter = "\xef\xbf\xbd";

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
