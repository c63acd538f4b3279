// one_line.h: what others wrote, as one line that a terminal and a log can show.
//
// Purpose: names, causes and texts of other hosts and of the environment: printable ASCII and valid UTF-8 stay. Bytes
//          that are no UTF-8, control characters (C1 too), and characters that turn the direction of a line, break it
//          or show nothing are escaped as \xNN, byte by byte.
// Threads: any. Pure.
// Units:   bytes. Errors: none.
// Source:  RFC 3629, section 4; Unicode 15, "Bidirectional" and "Default_Ignorable" format characters.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tcpx {

std::string OneLine(absl::string_view text);

// Bytes of the character that `text`, which is not empty, begins with; 0: it is no UTF-8.
size_t CharacterBytes(absl::string_view text);

}  // namespace tcpx
