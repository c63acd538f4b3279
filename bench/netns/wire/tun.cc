#include "bench/netns/wire/tun.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {
namespace wire {
namespace {

// What is copied out of the large buffer, so that acknowledgements under way do not hold 64 KiB each.
constexpr size_t kCopyUpTo = 2048;

// The device belongs to the namespace in which the file was opened.
absl::Status MakeDevice(const std::string& device, OwnedFd* fd) {
  fd->reset(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!*fd) return ErrnoStatus(errno, "/dev/net/tun");
  ifreq request = {};
  if (device.empty() || device.size() >= sizeof request.ifr_name) {
    return absl::InvalidArgumentError(absl::StrCat("'", device, "' is no name of a device"));
  }
  device.copy(request.ifr_name, device.size());
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(fd->get(), TUNSETIFF, &request) != 0) return ErrnoStatus(errno, absl::StrCat("TUNSETIFF ", device));
  if (ioctl(fd->get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0)
    return ErrnoStatus(errno, "TUNSETOFFLOAD");
  return absl::OkStatus();
}

absl::Status OpenInside(const std::string& netns, const std::string& device, OwnedFd* fd) {
  OwnedFd inside(open(absl::StrCat("/run/netns/", netns).c_str(), O_RDONLY | O_CLOEXEC));
  if (!inside) return absl::NotFoundError(absl::StrCat("no network namespace '", netns, "' (ip netns add makes one)"));
  OwnedFd outside(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!outside) return ErrnoStatus(errno, "/proc/thread-self/ns/net");
  if (setns(inside.get(), CLONE_NEWNET) != 0) return ErrnoStatus(errno, absl::StrCat("setns ", netns));
  const absl::Status made = MakeDevice(device, fd);
  if (setns(outside.get(), CLONE_NEWNET) != 0) return ErrnoStatus(errno, "setns back");
  return made;
}

}  // namespace

absl::StatusOr<Tun> Tun::Open(const std::string& netns, const std::string& device) {
  Tun tun;
  if (absl::Status status = OpenInside(netns, device, &tun.fd_); !status.ok()) return status;
  return tun;
}

bool Tun::Read(BufferPool* pool, Frame* frame) {
  if (scratch_ == nullptr) scratch_ = pool->Large();
  const iovec places[] = {{&frame->offload, sizeof frame->offload}, {scratch_.get(), kFrameBytesMax}};
  const ssize_t got = readv(fd_.get(), places, 2);
  if (got < static_cast<ssize_t>(sizeof frame->offload)) return false;
  frame->bytes = static_cast<size_t>(got) - sizeof frame->offload;
  if (frame->bytes <= kCopyUpTo) {
    frame->data = pool->Copy(scratch_.get(), frame->bytes);
  } else {
    frame->data = std::move(scratch_);
    scratch_ = nullptr;
  }
  return true;
}

bool Tun::Write(const Piece& piece) {
  const auto writable = [](const void* data) { return const_cast<void*>(data); };
  const iovec places[] = {{writable(&piece.offload), sizeof piece.offload},
                          {writable(piece.header.data()), piece.header_bytes},
                          {writable(piece.payload), piece.payload_bytes}};
  return writev(fd_.get(), places, 3) > 0;
}

}  // namespace wire
}  // namespace tcpx
