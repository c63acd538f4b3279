#include "tests/support/lost_threads.h"

static bool g_threads_are_lost = false;

// Asked at exit, by the sanitizer's library.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return g_threads_are_lost ? 1 : 0; }

namespace tcpx {

void ThreadsAreLost() { g_threads_are_lost = true; }

}  // namespace tcpx
