// handshake_sides.h: what the tests of the handshake say and hear.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <string>

#include "net_socket/connect/handshake.h"

namespace tcpx {

inline Hello SomeHello() {
  Hello hello;
  hello.ticket.fill(7);
  hello.connection_id.fill(9);
  hello.lanes = 4;
  return hello;
}

// Gives `side` what it wants of `bytes`, in pieces; returns how much that was.
template <typename Side>
size_t Feed(Side* side, const std::string& bytes, size_t piece) {
  size_t at = 0;
  while (at < bytes.size() && side->wants() > 0) {
    const size_t take = std::min({piece, bytes.size() - at, side->wants()});
    bytes.copy(side->room(), take, at);
    side->Took(take);
    at += take;
  }
  return at;
}

}  // namespace tcpx
