// json_text.h: a text as a JSON string.
//
// Threads: any; pure.
// Errors:  none: what is no UTF-8 becomes U+FFFD.
// Source:  RFC 8259, section 7.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tcpx {

// With its quotes.
std::string JsonText(absl::string_view text);

}  // namespace tcpx
