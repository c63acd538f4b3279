// tun.h: one end of the wire: a TUN device in a network namespace, with the kernel's segmentation left to its users.
//
// Purpose: GSO frames both ways (IFF_VNET_HDR, TUNSETOFFLOAD): 64 KiB per system call and per walk through the stack.
// Threads: one. Lifetime: the device goes with the object.
// Units:   bytes.
// Errors:  Open: ErrnoStatus that names the call; kNotFound: no such namespace. Read, Write: false.
// Source:  Documentation/networking/tuntap.rst, ip-netns(8).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/netns/wire/frame.h"
#include "common/fd.h"

namespace tcpx {
namespace wire {

class Tun {
 public:
  // Makes the device in the namespace that ip-netns knows by this name; it has no address yet and is down.
  static absl::StatusOr<Tun> Open(const std::string& netns, const std::string& device);

  // False: nothing is there.
  bool Read(BufferPool* pool, Frame* frame);
  // False: the kernel refused it (the device is down, no memory).
  bool Write(const Piece& piece);
  int fd() const { return fd_.get(); }

 private:
  OwnedFd fd_;
  Bytes scratch_;  // of the next read
};

}  // namespace wire
}  // namespace tcpx
