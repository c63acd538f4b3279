// fake_engine.h: an Engine whose every choice comes from a seed.
//
// Purpose: proves that the contract suite does not lean on one kernel interface, and drives code above the engine
//          through short results and odd orders that a real one gives rarely: each operation moves a seeded number of
//          bytes at the most, and ready operations complete in a seeded order.
// Threads: as Engine.
// Units:   bytes.
// Errors:  as Engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_socket/engine/engine.h"

namespace tcpx {

// `step_bytes_max`: no operation moves more than that at once.
std::unique_ptr<Engine> MakeFakeEngine(uint64_t seed, size_t step_bytes_max);

}  // namespace tcpx
