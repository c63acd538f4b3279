// event.h: one event of NCCL's profiler interface, whatever version it came by, and where the timeline shows it.
//
// Purpose: what NCCL's descriptors say, copied, because their texts and unions are valid during a call only.
// Threads: values.
// Units:   nanoseconds of MonotonicNanos, bytes.
// Errors:  none; an unknown type is an event without a name.
#pragma once

#include <cstdint>

#include "nccl/profiler_tables.h"

namespace tcpx {

// What a type of events is called: in TCPX_TRACE_EVENTS its kind, and in the timeline. The rest of some names is the
// event's own.
struct EventType {
  uint32_t bit;          // one of ncclProfilerEventType_t
  const char* kind;      // what asks for it
  const char* category;  // in the timeline
  const char* name;      // of an event without a function; null: its own, or its state's
  const char* row;       // of the timeline, or how it begins
};

inline constexpr EventType kEventTypes[] = {
    {ncclProfileGroup, "coll", "nccl", "group", "2 groups"},
    {ncclProfileColl, "coll", "nccl", nullptr, "3 collectives"},
    {ncclProfileP2p, "coll", "nccl", nullptr, "3 point-to-point with rank "},
    {ncclProfileProxyOp, "proxy", "proxy", nullptr, "5 proxy, "},
    {ncclProfileProxyStep, "proxy", "proxy", nullptr, "6 steps, "},
    {ncclProfileProxyCtrl, "control", "proxy", nullptr, "8 proxy thread"},
    {ncclProfileKernelCh, "gpu", "gpu", "kernel", "4 GPU, channel "},
    {ncclProfileNetPlugin, "net", "net", "transfer", "7 lane "},
    {ncclProfileGroupApi, "api", "api", "group", "0 application's groups"},
    {ncclProfileCollApi, "api", "api", nullptr, "0 application's calls"},
    {ncclProfileP2pApi, "api", "api", nullptr, "0 application's calls"},
    {ncclProfileKernelLaunch, "api", "api", "launch", "1 launches"},
    {ncclProfileCeColl, "coll", "nccl", nullptr, "3 copy engines"},
    {ncclProfileCeSync, "coll", "nccl", "synchronise", "3 copy engines"},
    {ncclProfileCeBatch, "coll", "nccl", "copy batch", "3 copy engines"},
};

// Of one that is not known, too.
const EventType& EventTypeOf(uint32_t type);

// A short text of NCCL's ("AllReduce", "ncclFloat32"), cut at its end.
struct ShortText {
  char text[20] = {};
  void Set(const char* from);
};

struct EventFacts {
  uint32_t type = 0;       // one of ncclProfilerEventType_t
  void* parent = nullptr;  // a handle of ours
  void* group = nullptr;   // another, of collectives; before v5 the same
  ShortText function, datatype, algorithm, protocol;
  uint64_t count = 0;     // elements
  uint64_t sequence = 0;  // of the collective
  uint64_t bytes = 0;
  uint64_t gpu_time = 0;  // of its clock, at the start
  int peer = -1, root = -1, channel = -1, steps = 0, step = -1, depth = 0;
  int fd = -1;  // of a network event that says so
  bool sends = false;
  bool captured = false;  // into a CUDA graph
};

// An event of an older version as the newest has it. Those of v5 are the newest's.
ncclProfilerEventDescr_v6_t Widened(const ncclProfilerEventDescr_v4_t& event);
inline const ncclProfilerEventDescr_v6_t& Widened(const ncclProfilerEventDescr_v6_t& event) { return event; }
EventFacts FactsOf(const ncclProfilerEventDescr_v6_t& event);

// An event from its start to its end.
struct Event {
  static constexpr int kStatesMax = 6;
  struct State {
    int64_t at_ns;
    int32_t state;  // ncclProfilerEventState_t
  };

  EventFacts facts;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t queued_ns = 0;      // an operation, before its begin
  uint64_t transferred = 0;   // by a step
  uint64_t gpu_time_end = 0;  // of its clock
  uint32_t track = 0;
  int states = 0;
  State state[kStatesMax];
};

}  // namespace tcpx
