// cpu_list.h: lists of CPUs as the kernel writes them: "0-3,7".
//
// Threads: any; no state.
// Units:   CPU numbers, from 0; a list in memory is sorted and without repeats.
// Errors:  ParseCpuList: kInvalidArgument.
// Source:  "List format" of cpuset(7).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {

inline constexpr int kMaxCpus = 1 << 16;

// "0-3,7" -> {0, 1, 2, 3, 7}. Empty text is an empty list.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// {0, 1, 2, 3, 7} -> "0-3,7".
std::string FormatCpuList(const std::vector<int>& cpus);

// Those of `a` that are in `b` too.
std::vector<int> CommonCpus(const std::vector<int>& a, const std::vector<int>& b);

}  // namespace tcpx
