// by_hand.h: a dialler made by hand, and the listen comm of the plugin that it reaches.
//
// Purpose: what an honest dialler does only at a bad moment, a test does here on purpose: hellos in any order, ends
//          between them, bytes in pieces.
// Threads: one.
// Errors:  what a healthy plugin does not refuse ends the process (TCPX_REQUIRE). Every wait is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/rank.h"

namespace tcpx {

// A socket that has said the hello, with the handle's ticket, and has got its answer.
int DialByHand(const char* handle, const Hello& hello, Answer* answer);
// The same; the answer must accept.
int DialByHand(const char* handle, const Hello& hello);
// True exactly when the peer has ended it, in order or by a reset; waits for what comes next.
bool EndsByHand(int fd);
// Once it returns, the plugin has seen all that was sent or closed before.
void GoRound(const char* handle);

// The record that all lanes are up.
std::string Established();
// A message of `text`, whole on lane 0; the n-th of its connection from 0 on.
std::string ExpressMessage(const std::string& text, uint64_t sequence = 0);

// A listen comm.
struct ListenByHand {
  explicit ListenByHand(Rank* one);

  // Null after `polls` of them.
  void* Accept(int polls = 100);
  // The same, within a minute.
  void* AcceptWithin();
  bool Accepts();
  // Waits until this process has so many descriptors more than with the listen comm alone.
  bool SettlesAtMore(size_t count) const;
  void Close();

  Rank* const rank;
  char handle[kHandleBytesMax] = {};
  void* const listen;
  const size_t descriptors;
};

// What the next message of `bytes` bytes holds.
std::string ReceiveText(Rank* rank, void* comm, size_t bytes);

}  // namespace tcpx
