#include "common/interfaces.h"

#include <net/if.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/address.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

constexpr unsigned kUp = IFF_UP | IFF_RUNNING;

Interface Make(const std::string& name, const std::string& address, int prefix_bits = 24, unsigned flags = kUp) {
  Interface one;
  one.name = name;
  one.address = *SocketAddress::Parse(address);
  one.index = one.address.scope();
  one.flags = flags;
  one.prefix_bits = prefix_bits;
  return one;
}

// As getifaddrs lists a host: all IPv4 addresses first, then IPv6.
std::vector<Interface> Host() {
  return {
      Make("lo", "127.0.0.1", 8, kUp | IFF_LOOPBACK),
      Make("eth0", "10.0.0.7"),
      Make("eth0", "10.0.9.7"),
      Make("eth1", "10.0.1.7"),
      Make("eth10", "10.0.2.7"),
      Make("down0", "10.0.3.7", 24, IFF_UP),
      Make("docker0", "172.17.0.1", 16),
      Make("virbr0", "192.168.122.1"),
      Make("lo", "::1", 128, kUp | IFF_LOOPBACK),
      Make("eth0", "2001:db8::7", 64),
      Make("eth0", "fe80::7%2", 64),
      Make("only6", "2001:db8:1::7", 64),
  };
}

std::vector<Interface> Without(std::vector<Interface> all, const std::vector<std::string>& prefixes) {
  std::vector<Interface> rest;
  for (const Interface& one : all) {
    bool drop = false;
    for (const std::string& prefix : prefixes) drop |= one.name.rfind(prefix, 0) == 0;
    if (!drop) rest.push_back(one);
  }
  return rest;
}

// "eth0 10.0.0.7, eth1 10.0.1.7"
std::string Describe(const std::vector<Interface>& found) {
  return absl::StrJoin(found, ", ", [](std::string* out, const Interface& one) {
    absl::StrAppend(out, one.name, " ", one.address.HostString());
  });
}

struct SelectCase {
  const char* name;
  InterfaceFilter filter;
  const char* want;
};

TEST(SelectInterfacesTest, FollowsTheThreeVariables) {
  const char* const kDefault = "eth0 10.0.0.7, eth1 10.0.1.7, eth10 10.0.2.7, only6 2001:db8:1::7";
  const SelectCase cases[] = {
      {"Unset", {"", "", ""}, kDefault},
      {"Prefix", {"eth1", "", ""}, "eth1 10.0.1.7, eth10 10.0.2.7"},
      {"TwoPrefixesInHostOrder", {"only,eth1", "", ""}, "eth1 10.0.1.7, eth10 10.0.2.7, only6 2001:db8:1::7"},
      {"Exact", {"=eth1", "", ""}, "eth1 10.0.1.7"},
      {"ExactList", {"=eth1,eth0", "", ""}, "eth0 10.0.0.7, eth1 10.0.1.7"},
      {"ExactIsNoPrefix", {"=eth", "", ""}, ""},
      {"Not", {"^eth", "", ""}, "lo 127.0.0.1, docker0 172.17.0.1, virbr0 192.168.122.1, only6 2001:db8:1::7"},
      {"NotList", {"^eth,lo,only", "", ""}, "docker0 172.17.0.1, virbr0 192.168.122.1"},
      {"NotExact", {"^=eth1,lo,docker0,virbr0", "", ""}, "eth0 10.0.0.7, eth10 10.0.2.7, only6 2001:db8:1::7"},
      {"PortIsIgnored", {"=eth1:9,eth0:4", "", ""}, "eth0 10.0.0.7, eth1 10.0.1.7"},
      {"EmptyEntriesAreIgnored", {",eth1,,", "", ""}, "eth1 10.0.1.7, eth10 10.0.2.7"},
      {"EmptyExclusion", {"^=", "", ""}, ""},
      {"NoMatchIsNoDevice", {"wlan", "", ""}, ""},
      {"OneCharacterIsUnset", {"l", "", ""}, kDefault},
      {"NotRunning", {"down0", "", ""}, ""},
      {"LoopbackOnRequest", {"lo", "", ""}, "lo 127.0.0.1"},
      {"Ipv4", {"", "AF_INET", ""}, "eth0 10.0.0.7, eth1 10.0.1.7, eth10 10.0.2.7"},
      {"Ipv6", {"", "AF_INET6", ""}, "eth0 2001:db8::7, only6 2001:db8:1::7"},
      {"OtherFamilyIsBoth", {"", "inet6", ""}, kDefault},
      {"Ipv6LoopbackIsSkipped", {"lo", "AF_INET6", ""}, ""},
      {"SubnetOfCommId", {"", "", "10.0.1.99:4410"}, "eth1 10.0.1.7"},
      {"SubnetOfASecondAddress", {"", "", "10.0.9.99:4410"}, "eth0 10.0.9.7"},
      {"SubnetIpv6", {"", "", "[2001:db8:1::99]:4410"}, "only6 2001:db8:1::7"},
      {"SubnetScoped", {"", "", "[fe80::99%2]:4410"}, "eth0 fe80::7%2"},
      {"SubnetOfAnotherScope", {"", "", "[fe80::99%3]:4410"}, kDefault},
      {"SubnetOfDocker", {"", "", "172.17.3.4:4410"}, "docker0 172.17.0.1"},
      {"SubnetOfNone", {"", "", "10.99.0.1:4410"}, kDefault},
      {"SubnetByNameIsUnknown", {"", "", "node7:4410"}, kDefault},
      {"NameBeatsSubnet", {"eth10", "", "10.0.1.99:4410"}, "eth10 10.0.2.7"},
  };
  for (const SelectCase& one : cases) {
    // Interface 2 need not exist here, so a scope prints as it was given.
    std::string found = Describe(SelectInterfaces(Host(), one.filter));
    char name[IF_NAMESIZE];
    std::string want = one.want;
    if (want.find("%2") != std::string::npos && if_indextoname(2, name) != nullptr) {
      want.replace(want.find("%2"), 2, std::string("%") + name);
    }
    EXPECT_EQ(found, want) << one.name;
  }
}

TEST(SelectInterfacesTest, DefaultSearchTakesTheFirstRuleThatFinds) {
  std::vector<Interface> host = Host();
  host.push_back(Make("ib0", "10.5.0.7"));
  host.push_back(Make("ibp3s0", "10.6.0.7"));
  const InterfaceFilter unset;
  EXPECT_EQ(Describe(SelectInterfaces(host, unset)), "ib0 10.5.0.7, ibp3s0 10.6.0.7");
  EXPECT_EQ(Describe(SelectInterfaces(host, {"", "", "10.0.1.99:1"})), "ib0 10.5.0.7, ibp3s0 10.6.0.7");
  host = Without(Host(), {"eth", "only"});
  EXPECT_EQ(Describe(SelectInterfaces(host, unset)), "docker0 172.17.0.1");
  host = Without(host, {"docker"});
  EXPECT_EQ(Describe(SelectInterfaces(host, unset)), "lo 127.0.0.1");
  host = Without(host, {"lo"});
  EXPECT_EQ(Describe(SelectInterfaces(host, unset)), "virbr0 192.168.122.1");
  host = Without(host, {"virbr"});
  EXPECT_EQ(Describe(SelectInterfaces(host, unset)), "");
}

TEST(SelectInterfacesTest, StopsAtTheMaximum) {
  std::vector<Interface> many;
  for (int i = 0; i < 20; ++i) many.push_back(Make(absl::StrCat("eth", i), absl::StrCat("10.0.", i, ".1")));
  EXPECT_EQ(SelectInterfaces(many, {}).size(), 16u);
  EXPECT_EQ(SelectInterfaces(many, {"eth", "", ""}).size(), 16u);
  EXPECT_EQ(SelectInterfaces(many, {}, 3).size(), 3u);
  EXPECT_EQ(SelectInterfaces(many, {}, 0).size(), 0u);
  EXPECT_EQ(SelectInterfaces(many, {"", "", "10.0.4.9:1"}, 0).size(), 0u);
}

TEST(SelectInterfacesTest, AnAddressMustBeUpAndRunning) {
  for (const unsigned flags : {0u, unsigned{IFF_UP}, unsigned{IFF_RUNNING}}) {
    EXPECT_TRUE(SelectInterfaces({Make("eth0", "10.0.0.1", 24, flags)}, {}).empty()) << flags;
  }
  EXPECT_EQ(SelectInterfaces({Make("eth0", "10.0.0.1")}, {}).size(), 1u);
}

TEST(OtherFamilyTest, WhatReachesBeyondTheLinkAndIsNotLeftOut) {
  const std::vector<Interface> host = Host();
  const auto other = [&](const std::string& name, const std::string& address, const std::string& family) {
    const auto found = OtherFamilyOf(Make(name, address), host, {"", family, ""});
    return found.has_value() ? found->address.HostString() : "";
  };
  EXPECT_EQ("2001:db8::7", other("eth0", "10.0.0.7", ""));
  EXPECT_EQ("10.0.0.7", other("eth0", "2001:db8::7", ""));
  EXPECT_EQ("", other("eth0", "10.0.0.7", "AF_INET"));
  EXPECT_EQ("", other("eth0", "2001:db8::7", "AF_INET6"));
  EXPECT_EQ("", other("eth1", "10.0.1.7", "")) << "has one family";
  EXPECT_EQ("", other("lo", "127.0.0.1", "")) << "::1 is no address for NCCL";
  const std::vector<Interface> local = {Make("eth0", "10.0.0.7"), Make("eth0", "fe80::7%2", 64)};
  EXPECT_FALSE(OtherFamilyOf(local[0], local, {}).has_value());
}

TEST(SystemInterfacesTest, FindsLoopbackWithItsNetmask) {
  const absl::StatusOr<std::vector<Interface>> all = SystemInterfaces();
  ASSERT_TRUE(all.ok()) << all.status();
  bool found = false;
  for (const Interface& one : *all) {
    EXPECT_TRUE(one.address.family() == AF_INET || one.address.family() == AF_INET6) << one.name;
    EXPECT_EQ(one.address.port(), 0);
    if (one.address.family() == AF_INET6 && one.address.IsLinkLocal()) {
      EXPECT_EQ(one.address.scope(), one.index) << one.address.ToString();
    }
    if (one.name != "lo" || one.address.HostString() != "127.0.0.1") continue;
    found = true;
    EXPECT_EQ(one.prefix_bits, 8);
    EXPECT_EQ(one.index, if_nametoindex("lo"));
    EXPECT_NE(one.flags & IFF_LOOPBACK, 0u);
  }
  if (!found) GTEST_SKIP() << "lo is down here, as in a fresh network namespace";
  EXPECT_EQ(LocalAddresses().size(), all->size());
}

TEST(ResolveCommIdTest, LeavesNumbersAloneAndLooksUpNames) {
  for (const char* text : {"", "x", "10.0.0.1:80", "[fe80::1%lo]:80", "no colon", "no.such.host.invalid:80"}) {
    EXPECT_EQ(ResolveCommId(text), text);
  }
  const std::string resolved = ResolveCommId("localhost:4410");
  if (resolved == "localhost:4410") GTEST_SKIP() << "localhost can't be resolved on this machine";
  const absl::StatusOr<SocketAddress> address = SocketAddress::Parse(resolved);
  ASSERT_TRUE(address.ok()) << resolved;
  EXPECT_TRUE(address->IsLoopback()) << resolved;
  EXPECT_EQ(address->port(), 4410);
}

}  // namespace
}  // namespace tcpx
