#include "nccl/client/open_library.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tcpx {

absl::StatusOr<FoundTable> OpenTable(const std::string& path, const std::string& prefix, int version, int oldest,
                                     int newest) {
  if (version != 0 && (version < oldest || version > newest)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": v", version, " is not one of v", oldest, " to v", newest));
  }
  if (version != 0) oldest = newest = version;
  FoundTable found;
  found.library.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (found.library == nullptr) {
    // The loader's text begins with the file, mostly.
    const std::string reason = dlerror();
    return absl::NotFoundError(absl::StartsWith(reason, path) ? reason : absl::StrCat(path, ": ", reason));
  }
  for (found.version = newest; found.version >= oldest; --found.version) {
    found.table = dlsym(found.library.get(), absl::StrCat(prefix, "_v", found.version).c_str());
    if (found.table != nullptr) return found;
  }
  return absl::NotFoundError(absl::StrCat(path, ": no symbol ", prefix, "_v", newest,
                                          newest != oldest ? absl::StrCat(" to _v", oldest) : std::string()));
}

}  // namespace tcpx
