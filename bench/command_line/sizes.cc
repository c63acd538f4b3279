#include "bench/command_line/sizes.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tcpx {
namespace bench {
namespace {

// Bits that a suffix shifts by, or -1.
int SuffixShift(char letter) {
  switch (absl::ascii_toupper(letter)) {
    case 'K':
      return 10;
    case 'M':
      return 20;
    case 'G':
      return 30;
    default:
      return -1;
  }
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumeSuffix(&rest, "iB")) absl::ConsumeSuffix(&rest, "B");
  int shift = rest.empty() ? -1 : SuffixShift(rest.back());
  if (shift > 0) rest.remove_suffix(1);
  uint64_t number = 0;
  const bool digits = !rest.empty() && rest.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!digits || !absl::SimpleAtoi(rest, &number)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a size (examples: 8, 64K, 128M)"));
  }
  if (shift < 0) shift = 0;
  if (number > (std::numeric_limits<uint64_t>::max() >> shift)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is too large"));
  }
  return number << shift;
}

std::string FormatSize(uint64_t bytes) {
  constexpr const char* kSuffixes[] = {"", "K", "M", "G"};
  int suffix = 0;
  while (suffix < 3 && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++suffix;
  }
  return absl::StrCat(bytes, kSuffixes[suffix]);
}

std::vector<uint64_t> GeometricSweep(uint64_t begin, uint64_t end, uint64_t factor) {
  std::vector<uint64_t> sizes;
  uint64_t size = begin;
  while (size <= end) {
    sizes.push_back(size);
    if (size > end / factor) break;
    size = size == 0 ? 1 : size * factor;
  }
  return sizes;
}

}  // namespace bench
}  // namespace tcpx
