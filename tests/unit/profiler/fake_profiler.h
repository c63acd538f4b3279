// fake_profiler.h: what the profiler of fake_profiler.cc heard.
#pragma once

#include <cstdint>

#include "nccl/profiler_tables.h"

namespace tcpx {

struct FakeProfilerLog {
  static constexpr int kSeenMax = 16;
  struct Seen {
    uint64_t type = 0;
    void* parent = nullptr;
    void* handle = nullptr;
    char function[20] = {};
  };
  int started = 0, stopped = 0, noted = 0, finalized = 0;
  ncclResult_t init_result = ncclSuccess;  // set by the test
  int wrong = 0;                           // calls with somebody else's context or handle
  Seen seen[kSeenMax];
};

}  // namespace tcpx
