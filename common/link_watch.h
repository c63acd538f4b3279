// link_watch.h: hears from the kernel that something has become of an interface or of an address of it.
//
// Purpose: TCP says nothing of a cable that is out or an address that has gone; the kernel's routing socket does within
//          a millisecond. What has come says only where to look: SystemInterfaces (interfaces.h) then says how it is,
//          so that news which the kernel drops, or an interface that comes back under another index, are no case apart.
// Threads: one at a time.
// Errors:  Open: the kernel's; sandboxes and containers may forbid these sockets.
// Source:  rtnetlink(7), netlink(7).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/address.h"
#include "common/fd.h"

namespace tcpx {

// Either an interface's name or an address has changed; the other member is empty.
struct LinkNews {
  std::string name;
  SocketAddress address;
};

// Pure: what one datagram says, which is aligned as an nlmsghdr; what is cut short ends it.
std::vector<LinkNews> ParseLinkNews(const char* data, size_t bytes);

class LinkWatch {
 public:
  absl::Status Open();
  void Close() { fd_.reset(); }
  // Readable when there is news; -1: not open.
  int fd() const { return fd_.get(); }
  // Appends all that has come. False: the kernel has dropped some.
  bool Read(std::vector<LinkNews>* news);

 private:
  OwnedFd fd_;
};

}  // namespace tcpx
