// faulty_engine.h: an Engine around another one, which does to operations what faults.h says.
//
// Purpose: short results, refusals, ends that are none, resets; completions that come late, never, or (where an
//          operation may end early) too early; sends without a copy, whose bytes it watches until it gives them back.
// Threads: as Engine.
// Errors:  as Engine. What the layer above does wrong (an operation left behind, bytes changed that are still the
//          kernel's) goes to Faults::Violation.
#pragma once

#include <cstdint>
#include <memory>

#include "net_socket/engine/engine.h"

namespace tcpx {

enum class InnerEngine { kFake, kEpoll, kIoUring };

// What every thread of the pool gets from here on instead of the epoll engine.
struct EngineFaults {
  InnerEngine inner = InnerEngine::kFake;
  bool zero_copy = false;
  uint64_t seed = 0;
};
void SetEngineFaults(const EngineFaults& faults);

}  // namespace tcpx
