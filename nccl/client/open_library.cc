#include "nccl/client/open_library.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tcpx {

absl::StatusOr<FoundTable> OpenTable(const std::string& path, const std::string& prefix, int version,
                                     const TableVersions& known) {
  if (version != 0 && (version < known.oldest || version > known.newest)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": v", version, " is not one of v", known.oldest, " to v", known.newest));
  }
  FoundTable found;
  found.library.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (found.library == nullptr) {
    // The loader's text begins with the file, mostly.
    const std::string reason = dlerror();
    return absl::NotFoundError(absl::StartsWith(reason, path) ? reason : absl::StrCat(path, ": ", reason));
  }
  const int newest = version != 0 ? version : known.newest;
  const int oldest = version != 0 ? version : known.oldest;
  for (found.version = newest; found.version >= oldest; --found.version) {
    found.table = dlsym(found.library.get(), absl::StrCat(prefix, "_v", found.version).c_str());
    if (found.table != nullptr) return found;
  }
  return absl::NotFoundError(absl::StrCat(path, ": no symbol ", prefix, "_v", newest,
                                          newest != oldest ? absl::StrCat(" to _v", oldest) : std::string()));
}

}  // namespace tcpx
