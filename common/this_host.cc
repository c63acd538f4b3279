#include "common/this_host.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

// PROC_PID_INIT_INO of Linux' proc_ns.h.
constexpr char kHostPidNamespace[] = "pid:[4026531836]";

// FNV-1a (Fowler, Noll, Vo), 64 bits.
uint64_t Mixed(uint64_t hash, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string ProcessMark() {
  std::string mark = absl::StrCat(getpid());
  char link[64] = "";
  const absl::string_view name = readlink("/proc/self/ns/pid", link, sizeof(link) - 1) > 0 ? link : "";
  if (name.empty() || name == kHostPidNamespace) return mark;
  mark.push_back('-');
  for (const char c : name) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) mark.push_back(c);
  }
  return mark;
}

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

uint64_t HostMark() {
  const auto boot = ReadSmallFile("/proc/sys/kernel/random/boot_id");
  struct stat space {};
  if (!boot.has_value() || stat("/proc/self/ns/net", &space) != 0) return 0;
  const uint64_t inode = space.st_ino;
  return Mixed(Mixed(0xcbf29ce484222325u, boot->data(), boot->size()), &inode, sizeof(inode)) | 1;
}

}  // namespace tcpx
