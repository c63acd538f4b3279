#include "common/small_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>

namespace tcpx {

constexpr size_t kMaxBytes = 64 << 10;

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while (text.size() < kMaxBytes) {
    got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  if (got < 0) return std::nullopt;  // /sys/class/net/<if>/speed of a link that is down: EINVAL
  return text;
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
