#include "common/this_host.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/fd.h"
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
  const ssize_t length = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
  const absl::string_view name(link, length > 0 ? static_cast<size_t>(length) : 0);
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

std::string InterfaceWith(const SocketAddress& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string name;
  for (const ifaddrs* each = all; each != nullptr && name.empty(); each = each->ifa_next) {
    const auto here = SocketAddress::FromSockaddr(each->ifa_addr, sizeof(sockaddr_in6));
    if (here.ok() && here->SameHostAddress(address)) name = each->ifa_name;
  }
  freeifaddrs(all);
  return name;
}

bool InterfaceRuns(const std::string& name) {
  ifreq request{};
  if (name.size() >= sizeof(request.ifr_name)) return true;
  std::memcpy(request.ifr_name, name.data(), name.size());
  const OwnedFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any.valid()) return true;
  if (ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) return false;
  constexpr unsigned kRuns = IFF_UP | IFF_RUNNING;
  return (static_cast<unsigned>(request.ifr_flags) & kRuns) == kRuns;
}

}  // namespace tcpx
