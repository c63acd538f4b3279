// fake_gdr.h: GDRCopy without a GPU: its mappings are where fake_cuda keeps its device memory.
//
//   auto gdr = FakeGdr::Open();   // before the plugin looks for the library
//   gdr.fail("gdr_map", ENOMEM);
// Threads: any. Lifetime: the library stays loaded.
// Errors:  Open ends the process where the stand-in is not in the test's folder.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace tcpx {

class FakeGdr {
 public:
  static FakeGdr Open() {
    void* const library = dlopen("tests/support/fake_cuda/libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "fake_gdr: %s\n", dlerror());
      std::abort();
    }
    FakeGdr fake;
    Find(library, "FakeGdrOpened", &fake.opened);
    Find(library, "FakeGdrPinned", &fake.pinned);
    Find(library, "FakeGdrWritten", &fake.written);
    Find(library, "FakeGdrFail", &fake.fail);
    for (const char* const function : {"gdr_open", "gdr_get_attribute", "gdr_pin_buffer", "gdr_map"}) {
      fake.fail(function, 0);
    }
    return fake;
  }

  // How often it is open.
  int (*opened)() = nullptr;
  // How many pieces of memory are pinned.
  int (*pinned)() = nullptr;
  // How many bytes went through mappings, without single words.
  uint64_t (*written)() = nullptr;
  // From now on `function` fails: gdr_open, gdr_pin_buffer or gdr_map; or gdr_get_attribute says that mappings are not
  // persistent. 0: it works.
  void (*fail)(const char* function, int error) = nullptr;

 private:
  template <typename Function>
  static void Find(void* library, const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library, name));
  }
};

}  // namespace tcpx
