// units.h: what counts how much of a message is done.
#pragma once

#include <cstdint>

namespace tcpx {

// Its bytes; a zero-byte message is one unit, so that it is sent, claimed and landed exactly once.
constexpr uint64_t Units(uint64_t bytes) { return bytes == 0 ? 1 : bytes; }

// In the place of a message's length, as long as nothing of it has come or gone.
inline constexpr uint64_t kUnknownBytes = ~uint64_t{0};

}  // namespace tcpx
