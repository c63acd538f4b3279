// small_file.h: reads the little text files of /proc and /sys, and the numbers of threads and descriptors there.
//
// Threads: any.
// Units:   bytes; at most 64 KiB are read, the rest is ignored.
// Errors:  no details: a file that can't be opened or read is no value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tcpx {

std::optional<std::string> ReadSmallFile(const std::string& path);

// What follows `key` in the first line of `text` that begins with it, without white space around it; empty: none does.
absl::string_view ValueIn(absl::string_view text, absl::string_view key);

// The numbers, not 0, that entries of a folder have for a name: of `most` of them at the most. None where it can't be
// read.
std::vector<int> NumbersIn(const std::string& folder, size_t most = SIZE_MAX);

}  // namespace tcpx
