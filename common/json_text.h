// json_text.h: a text as a JSON string.
//
// Threads: any; pure.
// Errors:  none: what is no UTF-8 becomes U+FFFD.
// Source:  RFC 8259, section 7.
#ifndef TCPX_COMMON_JSON_TEXT_H_
#define TCPX_COMMON_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tcpx {

// With its quotes.
std::string JsonText(absl::string_view text);

}  // namespace tcpx

#endif  // TCPX_COMMON_JSON_TEXT_H_
