// A profiler of somebody else, for chain_test: it writes down what it hears. Built once with v4 and once with v5.
#include "tests/unit/profiler/fake_profiler.h"

#include <cstring>

namespace {

tcpx::FakeProfilerLog g_log;

void* NewHandle() { return reinterpret_cast<void*>(static_cast<uintptr_t>(0x1000 + g_log.started)); }

template <typename Descriptor>
ncclResult_t Start(void* context, void** handle, Descriptor* event) {
  if (context != &g_log) ++g_log.wrong;
  tcpx::FakeProfilerLog::Seen& seen = g_log.seen[g_log.started++ % tcpx::FakeProfilerLog::kSeenMax];
  seen.type = event->type;
  seen.parent = event->parentObj;
  if (event->type == ncclProfileColl) strncpy(seen.function, event->coll.func, sizeof(seen.function) - 1);
  *handle = seen.handle = NewHandle();
  return ncclSuccess;
}

ncclResult_t Stop(void* handle) {
  if (handle == nullptr) ++g_log.wrong;
  ++g_log.stopped;
  return ncclSuccess;
}

ncclResult_t Note(void*, ncclProfilerEventState_t, ncclProfilerEventStateArgs_v5_t*) {
  ++g_log.noted;
  return ncclSuccess;
}

ncclResult_t Finalize(void* context) {
  if (context != &g_log) ++g_log.wrong;
  ++g_log.finalized;
  return ncclSuccess;
}

ncclResult_t Begin(void** context, int* mask) {
  *context = &g_log;
  *mask = FAKE_PROFILER_MASK;
  return g_log.init_result;
}

[[maybe_unused]] ncclResult_t InitV4(void** context, int* mask, const char*, uint64_t, int, int, int,
                                     ncclDebugLogger_t) {
  return Begin(context, mask);
}

[[maybe_unused]] ncclResult_t InitV5(void** context, uint64_t, int* mask, const char*, int, int, int,
                                     ncclDebugLogger_t) {
  return Begin(context, mask);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

tcpx::FakeProfilerLog* fake_profiler_log() { return &g_log; }

#if FAKE_PROFILER_VERSION == 4
ncclProfiler_v4_t ncclProfiler_v4 = {"fake", InitV4, Start, Stop, Note, Finalize};
#elif FAKE_PROFILER_VERSION == 5
ncclProfiler_v5_t ncclProfiler_v5 = {"fake", InitV5, Start, Stop, Note, Finalize};
#endif

#pragma GCC visibility pop
}
