// dcheck.h: checks of what must hold, in the sanitizer builds only.
//
//   TCPX_DCHECK(MayMove(from, to));  // "FILE:LINE: does not hold: MayMove(from, to)", then the process aborts
//
// Elsewhere the condition is compiled and never evaluated: it costs nothing.
// Threads: any.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tcpx {

[[noreturn]] inline void DcheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tcpx

#ifdef TCPX_DCHECKS  // .bazelrc, build:san
#define TCPX_DCHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::tcpx::DcheckFailed(__FILE__, __LINE__, #condition))
#else
#define TCPX_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
