// visitor.h: a plain socket that reaches the plugin's listening port: a stranger, or a peer made by hand.
//
// Threads: one.
// Errors:  what a healthy kernel does not refuse ends the process (TCPX_REQUIRE). Every wait is bounded.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "net_socket/message/wire.h"

namespace tcpx {

class Visitor {
 public:
  // Connects to where the handle says; from `source`, an IPv4 address of this host, or from wherever (null).
  explicit Visitor(const char* handle, const char* source = nullptr);
  // The same with a socket that is there already, which it takes.
  Visitor(const char* handle, int fd);
  Visitor(Visitor&& other) noexcept;
  Visitor(const Visitor&) = delete;
  ~Visitor();

  // False exactly when the other side has reset the connection.
  bool Say(const std::string& bytes);
  // So many bytes, or what came before the end.
  std::string Hear(size_t bytes);
  // All that comes until the other side ends the connection.
  std::string HearToTheEnd();
  // True exactly when the other side has ended the connection, now.
  bool Ended();
  void Leave();
  // The socket, which is the caller's from here on.
  int Release() { return std::exchange(fd_, -1); }

 private:
  void Connect(const char* handle);

  int fd_;
};

// The 64 bytes of a hello with the handle's ticket.
std::string HelloFor(const char* handle, Hello hello = Hello());
// The answer that `visitor` gets to `hello`, and its status.
Answer AnswerFor(Visitor* visitor, const std::string& hello);
inline HelloStatus StatusFor(Visitor* visitor, const std::string& hello) { return AnswerFor(visitor, hello).status; }

}  // namespace tcpx
