#include "common/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {
namespace {

struct Encoded {
  uint16_t family;
  uint16_t port;
  uint32_t scope;
  char address[16];
};
static_assert(sizeof(Encoded) == SocketAddress::kEncodedBytes);

constexpr uint16_t kEncodedV4 = 4;
constexpr uint16_t kEncodedV6 = 6;
constexpr size_t kV4Bytes = 4;
constexpr size_t kV6Bytes = 16;
// ::ffff:0:0/96 (RFC 4291, 2.5.5.2): the IPv4 address starts here.
constexpr size_t kMappedV4At = 12;

absl::Status Malformed(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("not a numeric address: \"", text, "\""));
}

// The parts of "HOST", "HOST:PORT", "[HOST]" and "[HOST]:PORT", where an IPv6 HOST may end in "%SCOPE".
struct AddressText {
  absl::string_view host;
  absl::string_view scope;
  absl::string_view port;
  bool malformed = false;
};

void SplitScope(AddressText* parts) {
  const size_t percent = parts->host.find('%');
  if (percent == absl::string_view::npos) return;
  parts->scope = parts->host.substr(percent + 1);
  parts->host = parts->host.substr(0, percent);
  parts->malformed |= parts->scope.empty();
}

AddressText Split(absl::string_view text) {
  AddressText parts;
  absl::string_view rest;
  if (!text.empty() && text[0] == '[') {
    const size_t close = text.find(']');
    parts.malformed = close == absl::string_view::npos;
    if (parts.malformed) return parts;
    parts.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    const size_t colon = text.find(':');
    const bool v6 = colon != absl::string_view::npos && text.find(':', colon + 1) != absl::string_view::npos;
    parts.host = v6 ? text : text.substr(0, colon);
    rest = text.substr(parts.host.size());
  }
  if (!rest.empty()) {
    parts.malformed = rest[0] != ':' || rest.size() == 1;
    parts.port = rest.substr(1);
  }
  SplitScope(&parts);
  return parts;
}

bool ParsePort(absl::string_view text, uint16_t* port) {
  uint32_t value = 0;
  if (!text.empty() && (!absl::SimpleAtoi(text, &value) || value > 0xffff)) return false;
  *port = static_cast<uint16_t>(value);
  return true;
}

bool ParseScope(absl::string_view text, uint32_t* scope) {
  *scope = 0;
  if (text.empty()) return true;
  *scope = if_nametoindex(std::string(text).c_str());
  return *scope != 0 || absl::SimpleAtoi(text, scope);
}

std::string ScopeName(uint32_t scope) {
  char name[IF_NAMESIZE];
  return if_indextoname(scope, name) != nullptr ? std::string(name) : absl::StrCat(scope);
}

absl::StatusOr<SocketAddress> Ask(decltype(&getsockname) function, int fd, absl::string_view what) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  struct sockaddr* address = reinterpret_cast<struct sockaddr*>(&storage);
  if (function(fd, address, &length) != 0) return ErrnoStatus(errno, what);
  return SocketAddress::FromSockaddr(address, length);
}

}  // namespace

absl::StatusOr<SocketAddress> SocketAddress::FromSockaddr(const struct ::sockaddr* address, socklen_t length) {
  SocketAddress result;
  if (address == nullptr || length < sizeof(sa_family_t)) return absl::InvalidArgumentError("no address");
  sa_family_t family;
  memcpy(&family, &address->sa_family, sizeof(family));
  if (family == AF_INET && length >= sizeof(sockaddr_in)) {
    memcpy(&result.storage_.v4, address, sizeof(sockaddr_in));
    memset(result.storage_.v4.sin_zero, 0, sizeof(result.storage_.v4.sin_zero));
    return result;
  }
  if (family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    memcpy(&result.storage_.v6, address, sizeof(sockaddr_in6));
    return result;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("family ", family, " with ", length, " bytes is no IPv4 or IPv6 address"));
}

absl::StatusOr<SocketAddress> SocketAddress::Parse(absl::string_view text) {
  const AddressText parts = Split(text);
  const std::string host(parts.host);
  uint16_t port = 0;
  uint32_t scope = 0;
  if (parts.malformed || !ParsePort(parts.port, &port)) return Malformed(text);
  SocketAddress result;
  if (inet_pton(AF_INET, host.c_str(), &result.storage_.v4.sin_addr) == 1) {
    if (!parts.scope.empty()) return Malformed(text);
    result.storage_.generic.sa_family = AF_INET;
  } else if (inet_pton(AF_INET6, host.c_str(), &result.storage_.v6.sin6_addr) == 1) {
    if (!ParseScope(parts.scope, &scope)) return Malformed(text);
    result.storage_.generic.sa_family = AF_INET6;
  } else {
    return Malformed(text);
  }
  result.set_port(port);
  result.set_scope(scope);
  return result;
}

SocketAddress SocketAddress::FromBytes(int family, absl::string_view bytes) {
  SocketAddress result = Any(family);
  if (bytes.empty() || bytes.size() != result.bytes().size()) return SocketAddress();
  memcpy(const_cast<char*>(result.bytes().data()), bytes.data(), bytes.size());
  return result;
}

SocketAddress SocketAddress::Any(int family, uint16_t port) {
  SocketAddress result;
  result.storage_.generic.sa_family = static_cast<sa_family_t>(family);
  result.set_port(port);
  return result;
}

absl::StatusOr<SocketAddress> SocketAddress::Decode(const void* bytes) {
  Encoded in;
  memcpy(&in, bytes, sizeof(in));
  const uint16_t family = ntohs(in.family);
  SocketAddress result;
  if (family == kEncodedV4) result = FromBytes(AF_INET, {in.address, kV4Bytes});
  if (family == kEncodedV6) result = FromBytes(AF_INET6, {in.address, kV6Bytes});
  if (!result.valid()) return absl::InvalidArgumentError(absl::StrCat("unknown address family ", family));
  result.set_port(ntohs(in.port));
  return result;
}

void SocketAddress::Encode(void* to) const {
  Encoded out = {};
  if (valid()) out = {htons(family() == AF_INET ? kEncodedV4 : kEncodedV6), htons(port()), htonl(scope()), {}};
  bytes().copy(out.address, sizeof(out.address));
  memcpy(to, &out, sizeof(out));
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(storage_.v4.sin_port);
  return family() == AF_INET6 ? ntohs(storage_.v6.sin6_port) : 0;
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET) storage_.v4.sin_port = htons(port);
  if (family() == AF_INET6) storage_.v6.sin6_port = htons(port);
}

void SocketAddress::set_scope(uint32_t scope) {
  if (family() == AF_INET6) storage_.v6.sin6_scope_id = scope;
}

absl::string_view SocketAddress::bytes() const {
  if (family() == AF_INET) return {reinterpret_cast<const char*>(&storage_.v4.sin_addr), kV4Bytes};
  if (family() == AF_INET6) return {reinterpret_cast<const char*>(&storage_.v6.sin6_addr), kV6Bytes};
  return {};
}

absl::string_view SocketAddress::unmapped_bytes() const { return IsV4Mapped() ? bytes().substr(kMappedV4At) : bytes(); }

bool SocketAddress::IsV4Mapped() const { return family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&storage_.v6.sin6_addr); }

bool SocketAddress::IsLinkLocal() const {
  if (unmapped_bytes().size() == kV4Bytes) return absl::StartsWith(unmapped_bytes(), "\xa9\xfe");
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&storage_.v6.sin6_addr);
}

bool SocketAddress::IsLoopback() const {
  if (unmapped_bytes().size() == kV4Bytes) return unmapped_bytes()[0] == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

bool SocketAddress::IsAny() const { return valid() && bytes().find_first_not_of('\0') == absl::string_view::npos; }

bool SocketAddress::SameHostAddress(const SocketAddress& other) const {
  if (!valid() || unmapped_bytes() != other.unmapped_bytes()) return false;
  return scope() == 0 || other.scope() == 0 || scope() == other.scope();
}

bool SocketAddress::SamePrefix(const SocketAddress& other, int prefix_bits) const {
  const absl::string_view own = bytes();
  const absl::string_view others = other.bytes();
  const bool comparable = valid() && family() == other.family();
  if (!comparable || prefix_bits < 0 || prefix_bits > 8 * static_cast<int>(own.size())) return false;
  const size_t whole = static_cast<size_t>(prefix_bits / 8);
  const int rest = prefix_bits % 8;
  if (own.substr(0, whole) != others.substr(0, whole)) return false;
  return rest == 0 || static_cast<uint8_t>(own[whole] ^ others[whole]) >> (8 - rest) == 0;
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  return family() == other.family() && bytes() == other.bytes() && port() == other.port() && scope() == other.scope();
}

std::string SocketAddress::HostString() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (!valid() || inet_ntop(family(), bytes().data(), text, sizeof(text)) == nullptr) return "(no address)";
  return scope() == 0 ? std::string(text) : absl::StrCat(text, "%", ScopeName(scope()));
}

std::string SocketAddress::ToString() const {
  if (!valid()) return HostString();
  if (family() == AF_INET) return absl::StrCat(HostString(), ":", port());
  return absl::StrCat("[", HostString(), "]:", port());
}

absl::StatusOr<SocketAddress> LocalAddress(int fd) { return Ask(&getsockname, fd, "getsockname"); }

absl::StatusOr<SocketAddress> PeerAddress(int fd) { return Ask(&getpeername, fd, "getpeername"); }

}  // namespace tcpx
