// tcp_pair.h: two connected TCP sockets on the loopback device.
//
// Threads: any.
// Units:   bytes.
// Errors:  MakeTcpPair fails the current test; its descriptors are then invalid.
#pragma once

#include <cstddef>
#include <string>

#include "common/fd.h"

namespace tcpx {

struct TcpPair {
  OwnedFd a;
  OwnedFd b;
};

// Both non-blocking. `buffer_bytes` above 0 sets SO_SNDBUF and SO_RCVBUF of both before they connect.
TcpPair MakeTcpPair(int buffer_bytes = 0);

// Writes until the socket takes no more, for good while nobody reads; returns how much it took.
size_t FillSocket(int fd);
// Reads what is there, up to `max` bytes.
std::string ReadAvailable(int fd, size_t max = ~size_t{0});
// Writes all of it; false when the socket is full or broken.
bool WriteAll(int fd, const std::string& bytes);
// Makes the other end see a reset.
void ResetSocket(OwnedFd fd);

}  // namespace tcpx
