// small_file.h: reads the little text files of /proc and /sys.
//
// Threads: any.
// Units:   bytes; at most 64 KiB are read, the rest is ignored.
// Errors:  no details: a file that can't be opened or read is no value.
#pragma once

#include <optional>
#include <string>

namespace tcpx {

std::optional<std::string> ReadSmallFile(const std::string& path);

}  // namespace tcpx
