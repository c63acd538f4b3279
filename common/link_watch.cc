#include "common/link_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "common/status.h"

namespace tcpx {
namespace {

// A datagram is at most a page or 8 KiB (netlink(7)).
constexpr size_t kDatagramBytes = 32768;
// In a row, so that a host that makes interfaces all the time does not keep the reader.
constexpr int kReadsMax = 64;

// Calls function(type, data, bytes) for each attribute.
template <typename Function>
void ForEachAttribute(const char* data, size_t bytes, Function function) {
  rtattr attribute;
  while (bytes >= sizeof(attribute)) {
    std::memcpy(&attribute, data, sizeof(attribute));
    if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > bytes) return;
    function(attribute.rta_type, data + sizeof(attribute), attribute.rta_len - sizeof(attribute));
    const size_t step = RTA_ALIGN(attribute.rta_len);
    if (step >= bytes) return;
    data += step;
    bytes -= step;
  }
}

SocketAddress AddressOf(int family, const char* data, size_t bytes) {
  sockaddr_storage storage{};
  storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET && bytes == sizeof(in_addr)) {
    std::memcpy(&reinterpret_cast<sockaddr_in*>(&storage)->sin_addr, data, bytes);
  } else if (family == AF_INET6 && bytes == sizeof(in6_addr)) {
    std::memcpy(&reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr, data, bytes);
  } else {
    return SocketAddress();
  }
  return SocketAddress::FromSockaddr(reinterpret_cast<const sockaddr*>(&storage), sizeof(storage))
      .value_or(SocketAddress());
}

void TakeLink(const char* body, size_t bytes, std::vector<LinkNews>* news) {
  if (bytes < NLMSG_ALIGN(sizeof(ifinfomsg))) return;
  LinkNews link;
  const size_t head = NLMSG_ALIGN(sizeof(ifinfomsg));
  ForEachAttribute(body + head, bytes - head, [&link](int type, const char* data, size_t length) {
    if (type == IFLA_IFNAME) link.name.assign(data, strnlen(data, length));
  });
  if (!link.name.empty()) news->push_back(std::move(link));
}

// IFA_LOCAL is the interface's own where a peer's comes with it, or where it is IPv4.
void TakeAddress(const char* body, size_t bytes, std::vector<LinkNews>* news) {
  ifaddrmsg header;
  if (bytes < NLMSG_ALIGN(sizeof(header))) return;
  std::memcpy(&header, body, sizeof(header));
  SocketAddress any;
  LinkNews own;
  const size_t head = NLMSG_ALIGN(sizeof(header));
  ForEachAttribute(body + head, bytes - head, [&](int type, const char* data, size_t length) {
    if (type == IFA_ADDRESS) any = AddressOf(header.ifa_family, data, length);
    if (type == IFA_LOCAL) own.address = AddressOf(header.ifa_family, data, length);
  });
  if (!own.address.valid()) own.address = any;
  if (own.address.valid()) news->push_back(std::move(own));
}

}  // namespace

std::vector<LinkNews> ParseLinkNews(const char* data, size_t bytes) {
  std::vector<LinkNews> news;
  nlmsghdr header;
  while (bytes >= sizeof(header)) {
    std::memcpy(&header, data, sizeof(header));
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes) break;
    const char* const body = data + NLMSG_HDRLEN;
    const size_t body_bytes = header.nlmsg_len - NLMSG_HDRLEN;
    if (header.nlmsg_type == RTM_NEWLINK || header.nlmsg_type == RTM_DELLINK) TakeLink(body, body_bytes, &news);
    if (header.nlmsg_type == RTM_NEWADDR || header.nlmsg_type == RTM_DELADDR) TakeAddress(body, body_bytes, &news);
    const size_t step = NLMSG_ALIGN(header.nlmsg_len);
    if (step >= bytes) break;
    data += step;
    bytes -= step;
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
