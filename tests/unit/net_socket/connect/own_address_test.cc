// What helps where a peer's address leads back to this host.
#include "net_socket/connect/own_address.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <string>
#include <vector>

#include "common/address.h"
#include "common/interfaces.h"

namespace tcpx {
namespace {

Interface Up(const std::string& name, const std::string& address) {
  Interface interface;
  interface.name = name;
  interface.address = *SocketAddress::Parse(address + ":0");
  interface.flags = IFF_UP | IFF_RUNNING;
  interface.prefix_bits = 24;
  return interface;
}

TEST(OwnAddressTest, TheAdviceFitsWhatIsSet) {
  const std::vector<Interface> all = {Up("lo", "127.0.0.1"), Up("eth1", "10.0.1.1"), Up("eth10", "10.0.10.1"),
                                      Up("docker0", "172.17.0.1"), Up("br-9f", "172.18.0.1")};
  const struct {
    const char* spec;
    const char* name;
    const char* advice;  // part of it
  } cases[] = {
      {"", "br-9f", "(NCCL_SOCKET_IFNAME=^docker,lo,br-9f), or name the one"},
      {"", "eth1", "(NCCL_SOCKET_IFNAME=^docker,lo,eth1, which leaves out eth10 too)"},
      {"^docker", "lo", "(NCCL_SOCKET_IFNAME=^docker,lo), or name the one"},
      {"^docker", "br-9f", "(NCCL_SOCKET_IFNAME=^docker,br-9f), or name the one"},
      {"^=docker0,lo", "eth1", "(NCCL_SOCKET_IFNAME=^=docker0,lo,eth1), or name the one"},
      {"eth,br", "br-9f", "NCCL_SOCKET_IFNAME=eth,br chooses it: name only"},
      {"=lo", "lo", "NCCL_SOCKET_IFNAME==lo chooses it: name only"},
      // It is left out here already.
      {"^docker,br-", "br-9f", "does not use br-9f (NCCL_SOCKET_IFNAME=^docker,br-), and the peer"},
      {"eth", "docker0", "does not use docker0 (NCCL_SOCKET_IFNAME=eth), and the peer"},
      {"", "docker0", "does not use docker0, and the peer"},
      {"", "", "Name the interface that connects the hosts"},
  };
  for (const auto& one : cases) {
    const std::string advice = OwnAddressAdvice(all, {one.spec, "", ""}, one.name);
    EXPECT_NE(advice.find(one.advice), std::string::npos) << one.spec << " " << one.name << ": " << advice;
  }
}

}  // namespace
}  // namespace tcpx
