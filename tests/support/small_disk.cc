#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <thread>

namespace tcpx {

bool OnSmallDisk(const std::string& dir, const std::function<void()>& body) {
  bool ran = false;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (mount("tcpx", dir.c_str(), "tmpfs", 0, "size=64k") != 0) return;
    ran = true;
    body();
    umount2(dir.c_str(), MNT_DETACH);
  }).join();
  return ran;
}

void FillDisk(const std::string& dir) {
  const int fd = open((dir + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const char page[4096] = {};
  while (write(fd, page, sizeof(page)) > 0) {
  }
  close(fd);
}

}  // namespace tcpx
