#include "common/small_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/fd.h"

namespace tcpx {

constexpr size_t kMaxBytes = 64 << 10;

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < kMaxBytes) {
    const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;  // /sys/class/net/<if>/speed of a link that is down: EINVAL
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

absl::string_view ValueIn(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, key)) return absl::StripAsciiWhitespace(line);
  }
  return "";
}

std::vector<int> NumbersIn(const std::string& folder, size_t most) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), &closedir);
  while (entries != nullptr && numbers.size() < most) {
    const dirent* const entry = readdir(entries.get());
    if (entry == nullptr) break;
    const int number = atoi(entry->d_name);
    if (number > 0) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace tcpx
