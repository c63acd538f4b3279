// fake_cuda.h: a CUDA driver without a GPU, for tests of staging.
//
// Purpose: a library with the name of the driver's. Loaded before the plugin, it is what the plugin's dlopen finds.
//          "Device memory" can't be touched by the host: it is mapped without access, and the copies, on a thread of
//          their own, use another mapping. Each copy writes the ends of 128-byte lines first and the rest a while
//          later, backwards: a copy engine promises no order. A call without a current context fails; so does one that
//          an application's capture of a graph forbids, which then is broken.
//
//   auto fake = FakeCuda::Of(library);
//   fake.delays(seed, 2000);
// Threads: any. Units: bytes, microseconds. Errors: as the driver's; abort() where a copy goes to memory that was
//          freed.
// Source:  CUDA Driver API; which calls a capture forbids: "Stream Management", cuThreadExchangeStreamCaptureMode.
#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace tcpx {

// What the fake counts now.
struct FakeCudaCounts {
  uint64_t pinned_bytes;
  uint64_t pinned_bytes_max;
  uint64_t streams;
  uint64_t events;
  uint64_t copies;          // that were carried out
  uint64_t strided_copies;  // among them
  uint64_t waiting;         // steps of streams that were not carried out
  uint64_t queries;         // of events and streams
  int capture_broken;       // a forbidden call came while an application captured
};

class FakeCuda {
 public:
  // All null where `library` is the real driver.
  static FakeCuda Of(void* library) {
    FakeCuda fake;
    Find(library, "FakeCudaReset", &fake.reset);
    Find(library, "FakeCudaDelays", &fake.delays);
    Find(library, "FakeCudaFail", &fake.fail);
    Find(library, "FakeCudaHold", &fake.hold);
    Find(library, "FakeCudaCapture", &fake.capture);
    Find(library, "FakeCudaView", &fake.view);
    Find(library, "FakeCudaThreadState", &fake.thread_state);
    Find(library, "FakeCudaCount", &fake.count);
    return fake;
  }

  // No delays, no failures, no hold, no capture.
  void (*reset)() = nullptr;
  // Each copy begins up to `most_us` late; another stream may go first.
  void (*delays)(uint64_t seed, unsigned most_us) = nullptr;
  // From the call after the next `passes` on, `function` returns `error`.
  void (*fail)(const char* function, int passes, int error) = nullptr;
  // Copies wait while it is held.
  void (*hold)(int held) = nullptr;
  // An application captures a graph, in the mode that forbids most.
  void (*capture)(int on) = nullptr;
  // Where the host may look at device memory.
  void* (*view)(uint64_t address) = nullptr;
  // The contexts that the calling thread has pushed, and its capture mode.
  void (*thread_state)(int* contexts, int* mode) = nullptr;
  void (*count)(FakeCudaCounts* counts) = nullptr;

 private:
  template <typename Function>
  static void Find(void* library, const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library, name));
  }
};

}  // namespace tcpx
