#include "common/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

}  // namespace tcpx
