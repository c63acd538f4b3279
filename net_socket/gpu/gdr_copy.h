// gdr_copy.h: GDRCopy, where it is installed: memory of a GPU that the CPU writes by itself.
//
// Purpose: maps GPU memory into this process. The CPU then writes a few bytes there in about a microsecond, where the
//          GPU's copy engine takes 5 to 10 (by reports of others: no GPU has run this yet). How much can be mapped
//          depends on the GPU's BAR1.
// Threads: one at a time. Map within a GpuScope: the library may call the driver.
// Lifetime: memory is unmapped before it is freed. If it is not, a write goes nowhere, but does no harm.
// Units:   bytes.
// Errors:  Load: kNotFound, with what is missing. Map: kUnavailable, with the function and its error.
// Source:  gdrapi.h of GDRCopy 2.6: the functions' types, GPU_PAGE_SIZE, GDR_ATTR_USE_PERSISTENT_MAPPING (from 2.5 on;
//          without it the driver takes mappings back, and the next write would be a SIGBUS), and that a kernel which
//          runs already may see bytes in any order. Hence the read behind each Write: on PCIe a read pushes earlier
//          writes before it (PCI Express Base Specification, transaction ordering).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {

class GdrCopy {
  struct Handle {  // gdr_mh_t
    unsigned long number = 0;
  };

 public:
  struct Place {
    Handle handle;
    char* view = nullptr;  // where the CPU finds it; null: it is not mapped
  };

  static absl::StatusOr<std::unique_ptr<GdrCopy>> Load(const char* library = "libgdrapi.so.2");
  ~GdrCopy();

  absl::Status Map(const char* data, size_t bytes);
  // Undoes one Map of the same memory, if there was one.
  void Unmap(const char* data, size_t bytes);
  Place Find(const char* at, size_t bytes) const;
  // In the memory before anything that is written later.
  void Write(const Place& to, absl::string_view bytes) const;
  // Of an aligned word.
  static uint64_t ReadWord(const Place& at);
  static void WriteWord(const Place& at, uint64_t value);

 private:
  struct Api {
    void* (*open)();
    int (*close)(void* gdr);
    int (*pin)(void* gdr, unsigned long at, size_t bytes, uint64_t p2p_token, uint32_t va_space, Handle* handle);
    int (*unpin)(void* gdr, Handle handle);
    int (*map)(void* gdr, Handle handle, void** view, size_t bytes);
    int (*unmap)(void* gdr, Handle handle, void* view, size_t bytes);
    int (*get_attribute)(void* gdr, int attribute, int* value);
    int (*copy_to_mapping)(Handle handle, void* to, const void* from, size_t bytes);
  };
  struct Window {
    Place place;            // of the memory
    char* pages = nullptr;  // of the GPU, in which it is
    size_t pages_bytes = 0;
  };

  GdrCopy(const Api& api, void* gdr) : api_(api), gdr_(gdr) {}
  void Close(const Window& window);

  const Api api_;
  void* const gdr_;
  std::multimap<std::pair<const char*, size_t>, Window> windows_;  // by the memory's address and size
};

}  // namespace tcpx
