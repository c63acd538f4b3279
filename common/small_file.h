// small_file.h: reads the little text files of /proc and /sys.
//
// Threads: any.
// Units:   bytes; at most 64 KiB are read, the rest is ignored.
// Errors:  no details: a file that can't be opened or read is no value.
#ifndef TCPX_COMMON_SMALL_FILE_H_
#define TCPX_COMMON_SMALL_FILE_H_

#include <optional>
#include <string>

namespace tcpx {

std::optional<std::string> ReadSmallFile(const std::string& path);

}  // namespace tcpx

#endif  // TCPX_COMMON_SMALL_FILE_H_
