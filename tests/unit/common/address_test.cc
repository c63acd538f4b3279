#include "common/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/fd.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

SocketAddress Parsed(const std::string& text) {
  const absl::StatusOr<SocketAddress> address = SocketAddress::Parse(text);
  EXPECT_TRUE(address.ok()) << text << ": " << address.status();
  return address.ok() ? *address : SocketAddress();
}

std::string Encoded(const SocketAddress& address) {
  std::string bytes(SocketAddress::kEncodedBytes + 1, '\x5a');
  address.Encode(&bytes[0]);
  EXPECT_EQ(bytes.back(), '\x5a') << "wrote past the end";
  bytes.pop_back();
  return bytes;
}

// The one interface that exists everywhere.
uint32_t LoopbackIndex() { return if_nametoindex("lo"); }

struct ParseCase {
  const char* text;
  const char* printed;  // null: malformed
  int family;
  uint16_t port;
};

TEST(AddressTest, ParsesAndPrints) {
  const ParseCase cases[] = {
      {"10.0.0.1:80", "10.0.0.1:80", AF_INET, 80},
      {"10.0.0.1", "10.0.0.1:0", AF_INET, 0},
      {"0.0.0.0:65535", "0.0.0.0:65535", AF_INET, 65535},
      {"[10.0.0.1]:7", "10.0.0.1:7", AF_INET, 7},
      {"::1", "[::1]:0", AF_INET6, 0},
      {"[::1]", "[::1]:0", AF_INET6, 0},
      {"[2001:DB8::5]:443", "[2001:db8::5]:443", AF_INET6, 443},
      {"[fe80::1%lo]:80", "[fe80::1%lo]:80", AF_INET6, 80},
      {"fe80::1%lo", "[fe80::1%lo]:0", AF_INET6, 0},
      {"[fe80::1%4000000]:80", "[fe80::1%4000000]:80", AF_INET6, 80},
      {"[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.1]:80", AF_INET6, 80},
      {"", nullptr, 0, 0},
      {"host7:80", nullptr, 0, 0},
      {"10.0.0.256:80", nullptr, 0, 0},
      {"10.0.0.1:65536", nullptr, 0, 0},
      {"10.0.0.1:-1", nullptr, 0, 0},
      {"10.0.0.1:", nullptr, 0, 0},
      {"10.0.0.1:8x", nullptr, 0, 0},
      {"10.0.0.1%lo:80", nullptr, 0, 0},
      {"[::1", nullptr, 0, 0},
      {"[::1]80", nullptr, 0, 0},
      {"[fe80::1%]:80", nullptr, 0, 0},
      {"[fe80::1%no_such_if]:80", nullptr, 0, 0},
  };
  for (const ParseCase& one : cases) {
    const absl::StatusOr<SocketAddress> address = SocketAddress::Parse(one.text);
    ASSERT_EQ(address.ok(), one.printed != nullptr) << one.text;
    if (!address.ok()) {
      EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << one.text;
      continue;
    }
    EXPECT_EQ(address->ToString(), one.printed) << one.text;
    EXPECT_EQ(address->family(), one.family) << one.text;
    EXPECT_EQ(address->port(), one.port) << one.text;
  }
}

TEST(AddressTest, NoAddressIsHarmless) {
  SocketAddress none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.length(), 0u);
  none.set_port(7);
  none.set_scope(7);
  EXPECT_EQ(none.port(), 0);
  EXPECT_EQ(none.scope(), 0u);
  EXPECT_FALSE(none.IsAny() || none.IsLoopback() || none.IsLinkLocal() || none.IsV4Mapped());
  EXPECT_FALSE(none.SameHostAddress(none));
  EXPECT_FALSE(none.SamePrefix(none, 0));
  EXPECT_TRUE(none == SocketAddress());
  EXPECT_EQ(none.ToString(), "(no address)");
  EXPECT_EQ(Encoded(none), std::string(SocketAddress::kEncodedBytes, '\0'));
}

struct TraitCase {
  const char* text;
  bool link_local;
  bool loopback;
  bool any;
};

TEST(AddressTest, KnowsSpecialRanges) {
  const TraitCase cases[] = {
      {"10.0.0.1", false, false, false},
      {"169.254.0.1", true, false, false},
      {"169.253.0.1", false, false, false},
      {"127.0.0.1", false, true, false},
      {"127.9.8.7", false, true, false},
      {"0.0.0.0", false, false, true},
      {"::1", false, true, false},
      {"::", false, false, true},
      {"fe80::1", true, false, false},
      {"febf::1", true, false, false},
      {"fec0::1", false, false, false},
      {"::ffff:127.0.0.1", false, true, false},
      {"::ffff:169.254.1.1", true, false, false},
      {"2001:db8::1", false, false, false},
  };
  for (const TraitCase& one : cases) {
    const SocketAddress address = Parsed(one.text);
    EXPECT_EQ(address.IsLinkLocal(), one.link_local) << one.text;
    EXPECT_EQ(address.IsLoopback(), one.loopback) << one.text;
    EXPECT_EQ(address.IsAny(), one.any) << one.text;
  }
}

struct SameCase {
  const char* a;
  const char* b;
  bool same;
};

TEST(AddressTest, SameHostAddressIgnoresPortsAndMapping) {
  const SameCase cases[] = {
      {"10.0.0.1:1", "10.0.0.1:2", true},        {"10.0.0.1", "10.0.0.2", false},
      {"[fe80::1%1]:1", "[fe80::1%2]:1", false}, {"[fe80::1%1]:1", "fe80::1", true},
      {"[fe80::1%1]:1", "[fe80::1%1]:9", true},  {"10.0.0.1", "::ffff:10.0.0.1", true},
      {"10.0.0.1", "::ffff:10.0.0.2", false},    {"10.0.0.1", "::10.0.0.1", false},
      {"2001:db8::1", "2001:db8::2", false},
  };
  for (const SameCase& one : cases) {
    EXPECT_EQ(Parsed(one.a).SameHostAddress(Parsed(one.b)), one.same) << one.a << " " << one.b;
    EXPECT_EQ(Parsed(one.b).SameHostAddress(Parsed(one.a)), one.same) << one.b << " " << one.a;
  }
}

TEST(AddressTest, EqualityCountsEveryPart) {
  EXPECT_EQ(Parsed("10.0.0.1:1"), Parsed("10.0.0.1:1"));
  EXPECT_NE(Parsed("10.0.0.1:1"), Parsed("10.0.0.1:2"));
  EXPECT_NE(Parsed("10.0.0.1:1"), Parsed("10.0.0.2:1"));
  EXPECT_NE(Parsed("[fe80::1%1]:1"), Parsed("[fe80::1%2]:1"));
  EXPECT_NE(Parsed("0.0.0.0"), Parsed("::"));
}

struct PrefixCase {
  const char* a;
  const char* b;
  int bits;
  bool same;
};

TEST(AddressTest, SamePrefixComparesToTheBit) {
  const PrefixCase cases[] = {
      {"10.0.0.1", "10.0.0.254", 24, true},
      {"10.0.0.1", "10.0.1.1", 24, false},
      {"10.0.0.1", "10.0.1.1", 23, true},
      {"10.0.0.127", "10.0.0.128", 25, false},
      {"10.0.0.127", "10.0.0.128", 24, true},
      {"10.0.0.1", "10.0.0.1", 32, true},
      {"10.0.0.1", "10.0.0.0", 32, false},
      {"10.0.0.1", "200.0.0.1", 0, true},
      {"10.0.0.1", "10.0.0.1", 33, false},
      {"10.0.0.1", "10.0.0.1", -1, false},
      {"10.0.0.1", "::ffff:10.0.0.1", 8, false},
      {"2001:db8::1", "2001:db8::ffff", 64, true},
      {"2001:db8::1", "2001:db8:0:1::1", 64, false},
      {"2001:db8::1", "2001:db8::1", 128, true},
  };
  for (const PrefixCase& one : cases) {
    EXPECT_EQ(Parsed(one.a).SamePrefix(Parsed(one.b), one.bits), one.same) << one.a << " " << one.b << "/" << one.bits;
  }
}

TEST(AddressTest, EncodingIsTheseBytes) {
  EXPECT_EQ(Encoded(Parsed("10.1.2.3:4660")),
            std::string("\0\x04\x12\x34\0\0\0\0\x0a\x01\x02\x03\0\0\0\0\0\0\0\0\0\0\0\0", 24));
  EXPECT_EQ(Encoded(Parsed("[fe80::1:2%258]:1")),
            std::string("\0\x06\0\x01\0\0\x01\x02\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\x01\0\x02", 24));
}

TEST(AddressTest, DecodingForgetsThePeersScope) {
  for (const char* text : {"10.0.0.1:80", "[2001:db8::5]:443", "[::ffff:10.0.0.1]:9"}) {
    const std::string bytes = "x" + Encoded(Parsed(text));  // at an odd offset
    const absl::StatusOr<SocketAddress> back = SocketAddress::Decode(bytes.data() + 1);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, Parsed(text));
  }
  const std::string scoped = Encoded(Parsed("[fe80::1%7]:80"));
  absl::StatusOr<SocketAddress> back = SocketAddress::Decode(scoped.data());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->scope(), 0u);
  EXPECT_EQ(back->ToString(), "[fe80::1]:80");
  back->set_scope(LoopbackIndex());
  EXPECT_EQ(back->ToString(), "[fe80::1%lo]:80");
}

TEST(AddressTest, DecodingRefusesUnknownFamilies) {
  for (const char family : {'\0', '\x02', '\x05', '\x0a', '\xff'}) {
    std::string bytes = Encoded(Parsed("10.0.0.1:80"));
    bytes[1] = family;
    EXPECT_EQ(SocketAddress::Decode(bytes.data()).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(AddressTest, FromSockaddrRefusesWhatItCannotHold) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  const sockaddr* generic = reinterpret_cast<const sockaddr*>(&v4);
  EXPECT_TRUE(SocketAddress::FromSockaddr(generic, sizeof(v4)).ok());
  EXPECT_FALSE(SocketAddress::FromSockaddr(generic, sizeof(v4) - 1).ok());
  EXPECT_FALSE(SocketAddress::FromSockaddr(generic, 0).ok());
  EXPECT_FALSE(SocketAddress::FromSockaddr(nullptr, sizeof(v4)).ok());
  v4.sin_family = AF_INET6;
  EXPECT_FALSE(SocketAddress::FromSockaddr(generic, sizeof(v4)).ok());
  v4.sin_family = AF_UNIX;
  EXPECT_FALSE(SocketAddress::FromSockaddr(generic, sizeof(v4)).ok());
}

class AddressSocketTest : public testing::TestWithParam<const char*> {};

TEST_P(AddressSocketTest, LocalAndPeerAddressAgreeAcrossAConnection) {
  const SocketAddress any_port = Parsed(GetParam());
  OwnedFd listener(socket(any_port.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid() || bind(listener.get(), any_port.sockaddr(), any_port.length()) != 0) {
    GTEST_SKIP() << GetParam() << " is not available on this machine: " << strerror(errno);
  }
  ASSERT_EQ(listen(listener.get(), 1), 0);
  const absl::StatusOr<SocketAddress> server = LocalAddress(listener.get());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NE(server->port(), 0);
  EXPECT_TRUE(server->SameHostAddress(any_port));
  OwnedFd client(socket(any_port.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), server->sockaddr(), server->length()), 0);
  OwnedFd accepted(accept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(*PeerAddress(client.get()), *server);
  EXPECT_EQ(*PeerAddress(accepted.get()), *LocalAddress(client.get()));
}

INSTANTIATE_TEST_SUITE_P(Families, AddressSocketTest, testing::Values("127.0.0.1:0", "[::1]:0"));

TEST(AddressTest, AddressOfNoSocketIsAnError) {
  EXPECT_FALSE(LocalAddress(-1).ok());
  OwnedFd unconnected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(PeerAddress(unconnected.get()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tcpx
