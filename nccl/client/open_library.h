// open_library.h: a table of a library that was opened as NCCL opens it.
//
// Threads: any.
// Lifetime: the table lives while the library is open.
// Errors:  name the path and the loader's text.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tcpx {

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};
using LibraryHandle = std::unique_ptr<void, LibraryCloser>;

struct FoundTable {
  LibraryHandle library;
  int version = 0;
  const void* table = nullptr;
};

// Opens `path` with RTLD_NOW | RTLD_LOCAL and takes the newest of its symbols `prefix`_vN, N from `oldest` to `newest`,
// or exactly `version` where that is not 0.
absl::StatusOr<FoundTable> OpenTable(const std::string& path, const std::string& prefix, int version, int oldest,
                                     int newest);

}  // namespace tcpx
