// counted.h: "1 lane", "2 lanes".
//
// Threads: any; pure. Errors: none.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tcpx {

// `noun`: one whose plural ends in s.
inline std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace tcpx
