// connection_state.h: where a connection's end is in its life, and which moves are legal.
//
// States:  open -> failed (the first error sticks) -> closed; or open -> closed, the orderly end. If a lane ends
//          without a reason, the state is failing first: nothing is moved, and the error is reported once the reason
//          has come, or has not come in time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {

enum class ConnectionState : uint8_t { kOpen, kFailing, kFailed, kClosed };

// By the state left, then by the one entered.
inline constexpr size_t kConnectionStates = 4;
inline constexpr bool kLegalConnectionMoves[kConnectionStates][kConnectionStates] = {
    // to open, failing, failed, closed
    {false, true, true, true},     // from open
    {false, false, true, true},    // from failing
    {false, false, false, true},   // from failed
    {false, false, false, false},  // from closed
};

constexpr bool MayMove(ConnectionState from, ConnectionState to) {
  return kLegalConnectionMoves[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

}  // namespace tcpx
