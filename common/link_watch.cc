#include "common/link_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/string_view.h"
#include "common/status.h"

namespace tcpx {
namespace {

// A datagram is at most a page or 8 KiB (netlink(7)).
constexpr size_t kDatagramBytes = 32768;
// In a row, so that a host that makes interfaces all the time does not keep the reader.
constexpr int kReadsMax = 64;

void TakeLink(const nlmsghdr* message, std::vector<LinkNews>* news) {
  LinkNews link;
  int left = static_cast<int>(IFLA_PAYLOAD(message));
  for (const rtattr* part = IFLA_RTA(NLMSG_DATA(message)); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
    const char* const data = static_cast<const char*>(RTA_DATA(part));
    if (part->rta_type == IFLA_IFNAME) link.name.assign(data, strnlen(data, RTA_PAYLOAD(part)));
  }
  if (!link.name.empty()) news->push_back(std::move(link));
}

// IFA_LOCAL is the interface's own where a peer's comes with it, or where it is IPv4.
void TakeAddress(const nlmsghdr* message, std::vector<LinkNews>* news) {
  const auto* const header = static_cast<const ifaddrmsg*>(NLMSG_DATA(message));
  SocketAddress any;
  LinkNews own;
  int left = static_cast<int>(IFA_PAYLOAD(message));
  for (const rtattr* part = IFA_RTA(header); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
    const absl::string_view bytes(static_cast<const char*>(RTA_DATA(part)), RTA_PAYLOAD(part));
    const SocketAddress address = SocketAddress::FromBytes(header->ifa_family, bytes);
    if (part->rta_type == IFA_ADDRESS) any = address;
    if (part->rta_type == IFA_LOCAL) own.address = address;
  }
  if (!own.address.valid()) own.address = any;
  if (own.address.valid()) news->push_back(std::move(own));
}

}  // namespace

std::vector<LinkNews> ParseLinkNews(const char* data, size_t bytes) {
  std::vector<LinkNews> news;
  int left = static_cast<int>(bytes);
  const nlmsghdr* message = reinterpret_cast<const nlmsghdr*>(data);
  for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_DELLINK) TakeLink(message, &news);
    if (message->nlmsg_type == RTM_NEWADDR || message->nlmsg_type == RTM_DELADDR) TakeAddress(message, &news);
  }
  return news;
}

absl::Status LinkWatch::Open() {
  OwnedFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd.valid()) return ErrnoStatus(errno, "socket(AF_NETLINK)");
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  self.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof(self)) != 0) {
    return ErrnoStatus(errno, "bind of a netlink socket");
  }
  fd_ = std::move(fd);
  return absl::OkStatus();
}

bool LinkWatch::Read(std::vector<LinkNews>* news) {
  alignas(nlmsghdr) char datagram[kDatagramBytes];
  bool all = true;
  for (int i = 0; i < kReadsMax; ++i) {
    sockaddr_nl from{};
    socklen_t length = sizeof(from);
    const ssize_t got = recvfrom(fd_.get(), datagram, sizeof(datagram), MSG_DONTWAIT,
                                 reinterpret_cast<struct sockaddr*>(&from), &length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      all = false;
      continue;
    }
    if (got <= 0) break;
    if (from.nl_pid != 0) continue;  // Not the kernel's.
    const std::vector<LinkNews> some = ParseLinkNews(datagram, static_cast<size_t>(got));
    news->insert(news->end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace tcpx
