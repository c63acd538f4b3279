// escape.h: texts as one line that a terminal and a log can show, and as a JSON string.
//
// Threads: any; pure.
// Units:   bytes. Errors: none.
// Source:  RFC 3629, section 4; Unicode 15, "Bidirectional" and "Default_Ignorable" format characters; RFC 8259,
//          section 7.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tcpx {

// What others wrote: names, causes and texts of other hosts and of the environment. Printable ASCII and valid UTF-8
// stay. Bytes that are no UTF-8, control characters (C1 too), and characters that turn the direction of a line, break
// it or show nothing are escaped as \xNN, byte by byte.
std::string OneLine(absl::string_view text);

// With its quotes. What is no UTF-8 becomes U+FFFD.
std::string JsonText(absl::string_view text);

}  // namespace tcpx
