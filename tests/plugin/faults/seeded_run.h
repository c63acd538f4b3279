// seeded_run.h: one connection's life under the faults of one seed.
//
// Purpose: makes a plugin, connects it to itself, moves messages whose ends it knows, lets go wrong what the
//          seed says, closes everything, and looks what is left.
// Threads: one, and the plugin's. Lifetime: nothing outlives the call, or that is the finding.
// Errors:  empty exactly when each request ended once, with its bytes exact or with an error that a fault explains,
//          each request's slot, each buffer, descriptor and thread came back, and nothing hung.
#pragma once

#include <cstdint>
#include <string>

namespace tcpx {

struct RunResult {
  std::string wrong;       // empty: nothing
  std::string summary;     // what the seed chose
  bool completed = false;  // every message arrived
  bool failed = false;     // the connection ended with an error
};

RunResult RunSeed(uint64_t seed);

}  // namespace tcpx
