#include "common/process_mark.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace {

// PROC_PID_INIT_INO of Linux' proc_ns.h.
constexpr char kHostPidNamespace[] = "pid:[4026531836]";

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

}  // namespace tcpx
