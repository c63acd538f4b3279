#include "tests/support/fake_cards.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace tcpx {
namespace {

void Shell(const std::string& command) { ASSERT_EQ(0, std::system(command.c_str())) << command; }

}  // namespace

std::string CardName(int card) { return "eth" + std::to_string(card); }

std::string CardPath(int card) { return "devices/pci0000:3a/0000:3b:0" + std::to_string(card) + ".0"; }

void MakeInterfaces(int count) {
  for (int i = 0; i < count; ++i) {
    Shell("ip link add " + CardName(i) + " type veth peer name other" + std::to_string(i));
    Shell("ip link set other" + std::to_string(i) + " up");
    Shell("ip address add 10.0." + std::to_string(i) + ".1/24 dev " + CardName(i));
    Shell("ip link set " + CardName(i) + " up");
  }
  // The kernel takes its time.
  Shell("for t in $(seq 600); do [ $(ip -o link | grep -c ' eth.* state UP ') = " + std::to_string(count) +
        " ] && exit; sleep 0.05; done; exit 1");
}

}  // namespace tcpx
