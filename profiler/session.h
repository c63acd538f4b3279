// session.h: one communicator as the profiler knows it, and what all of them share.
//
// Purpose: begins the trace, tcpx-trace.HOST.MARK.json (this_host.h), with the first communicator and ends it with
//          the last one; hands each event to the recorder and to the profiler after this one.
// Threads: Begin and End by any, one at a time for a communicator; the rest by several at once.
// Units:   nanoseconds of MonotonicNanos.
// Lifetime: exit without End writes what is over and ends the trace, while NCCL's threads may still call; dlclose
//          after the last End leaves nothing. A handle that comes after the last End finds nothing. In a forked child
//          all does nothing, and the trace stays its parent's.
// Errors:  a trace or a profiler that can't be had is one WARN; Begin succeeds all the same, and the job runs.
#pragma once

#include <cstdint>

#include "profiler/chain.h"
#include "profiler/recorder.h"

namespace tcpx {

class Session {
 public:
  static ncclResult_t Begin(void** context, int* mask, int version, const CommunicatorFacts& facts);
  static ncclResult_t End(void* context);

  ncclResult_t Start(void** handle, const ncclProfilerEventDescr_v6_t& event);
  static ncclResult_t Stop(void* handle);
  static ncclResult_t Note(void* handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v5_t* args);

 private:
  uint32_t communicator_ = 0;
  bool has_chain_ = false;   // the other profiler knows of it
  void* chained_ = nullptr;  // the other profiler's context
};

}  // namespace tcpx
