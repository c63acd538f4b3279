// fake_acceptor.h: a listening socket made by hand, in the place of the plugin's: an acceptor, a stranger, or nobody.
//
// Threads: one. Lifetime: what it has accepted is its user's.
// Errors:  what a healthy kernel or dialler does not do ends the process (TCPX_REQUIRE).
#pragma once

#include <cstddef>
#include <string>

#include "common/address.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class FakeAcceptor {
 public:
  // On the loopback device. `window_bytes` of the sockets it accepts, 0: the kernel's choice.
  explicit FakeAcceptor(bool listens = true, int window_bytes = 0);
  FakeAcceptor(const FakeAcceptor&) = delete;
  FakeAcceptor& operator=(const FakeAcceptor&) = delete;
  ~FakeAcceptor();

  int fd() const { return fd_; }
  SocketAddress address() const;
  // A handle as of a peer here; as many interfaces as it says.
  std::string HandleBytes(int nics = 1) const;
  void WriteHandle(char* out) const;

  void Listen();
  // The next socket that dials; waits for it.
  int Accept() const;
  // The same; -1: nobody is there.
  int TryAccept() const;

 private:
  const int fd_;
};

void SayByHand(int fd, const std::string& bytes);
// So many bytes, which come.
std::string HearByHand(int fd, size_t bytes);
Hello HearHello(int fd);
std::string Encoded(const Answer& answer);

}  // namespace tcpx
