// address.h: one IPv4 or IPv6 socket address.
//
// Purpose: a value type for what listens, dials and is written into the handle and the hello.
// Threads: a plain value. ToString of a scoped address asks the kernel for the interface's name.
// Units:   ports and families in host byte order; scopes are interface indices.
// Errors:  kInvalidArgument for a family other than AF_INET and AF_INET6 and for malformed text or bytes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {

class SocketAddress {
 public:
  // Bytes of the binary form; all integers in network byte order:
  //   0 u16 family (4 or 6), 2 u16 port, 4 u32 scope, 8 address (IPv4: 4 bytes, then 12 zeros).
  static constexpr size_t kEncodedBytes = 24;

  // No address: family() is AF_UNSPEC and length() 0.
  SocketAddress() = default;

  // Reads what its family needs of `length` bytes.
  static absl::StatusOr<SocketAddress> FromSockaddr(const struct ::sockaddr* address, socklen_t length);
  // "10.0.0.1", "10.0.0.1:80", "fe80::1%eth0", "[fe80::1%eth0]:80" and "[::1]". Numeric only. Without a port it is 0. A
  // scope is an interface's name or index.
  static absl::StatusOr<SocketAddress> Parse(absl::string_view text);
  // The address's 4 or 16 bytes; no address where their number is not the family's.
  static SocketAddress FromBytes(int family, absl::string_view bytes);
  // The wildcard address of a family: AF_INET or AF_INET6.
  static SocketAddress Any(int family, uint16_t port = 0);

  // Reads kEncodedBytes of any alignment. The scope is left 0: a peer's interface index means nothing here.
  static absl::StatusOr<SocketAddress> Decode(const void* bytes);
  // Writes kEncodedBytes of any alignment.
  void Encode(void* to) const;

  const struct ::sockaddr* sockaddr() const { return &storage_.generic; }
  socklen_t length() const {
    return family() == AF_INET ? sizeof(sockaddr_in) : family() == AF_INET6 ? sizeof(sockaddr_in6) : 0;
  }
  int family() const { return storage_.generic.sa_family; }
  bool valid() const { return family() != AF_UNSPEC; }
  uint16_t port() const;
  void set_port(uint16_t port);
  // 0 for IPv4 and for an unscoped address.
  uint32_t scope() const { return family() == AF_INET6 ? storage_.v6.sin6_scope_id : 0; }
  // Ignored for IPv4.
  void set_scope(uint32_t scope);

  // 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291), v4-mapped included.
  bool IsLinkLocal() const;
  // 127.0.0.0/8 or ::1, v4-mapped included.
  bool IsLoopback() const;
  // 0.0.0.0 or ::.
  bool IsAny() const;
  // ::ffff:0:0/96.
  bool IsV4Mapped() const;

  // Same address; ports are ignored, and a v4-mapped address equals its IPv4 form. Scopes are compared only when both
  // are set.
  bool SameHostAddress(const SocketAddress& other) const;
  // True exactly when the first `prefix_bits` of both addresses are equal and the families too.
  bool SamePrefix(const SocketAddress& other, int prefix_bits) const;

  // Family, address, port and scope.
  bool operator==(const SocketAddress& other) const;
  bool operator!=(const SocketAddress& other) const { return !(*this == other); }

  // "10.0.0.1:4410", "[fe80::1%eth0]:4410".
  std::string ToString() const;
  // As ToString without port and brackets: "10.0.0.1", "fe80::1%eth0".
  std::string HostString() const;

 private:
  // Of the address: 4 or 16; none for no address.
  absl::string_view bytes() const;
  // The same, but the IPv4 form of a v4-mapped address.
  absl::string_view unmapped_bytes() const;

  union Storage {
    sockaddr_in6 v6;  // the first, and the largest: all is zero at first
    sockaddr_in v4;
    struct ::sockaddr generic;
  } storage_{};
};

// getsockname and getpeername.
absl::StatusOr<SocketAddress> LocalAddress(int fd);
absl::StatusOr<SocketAddress> PeerAddress(int fd);

}  // namespace tcpx
