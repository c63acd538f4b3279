// From setNetAttr to the lanes of a dial: a plugin whose one device is fast, and a peer on another host.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/address.h"
#include "net_socket/message/wire.h"
#include "net_socket/plugin/plugin.h"

namespace tcpx {
namespace {

std::mutex lines_mutex;
std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}

void KeepLine(LogLevel, uint64_t, const char*, int, const char* text) {
  std::lock_guard<std::mutex> lock(lines_mutex);
  Lines().emplace_back(text);
}

class AnnouncedFlowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/sysXXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name.data()));
    root_ = name;
    std::filesystem::create_directories(root_ / "class/net/lo");
    std::ofstream(root_ / "class/net/lo/speed") << "100000\n";
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
    setenv("TCPX_THREADS", "0", 1);
  }
  void TearDown() override {
    unsetenv("TCPX_LANES");
    std::filesystem::remove_all(root_);
  }

  // What the log says of announced connections when one is dialled to another host; empty: nothing.
  std::string Dial(const NetworkAttributes& attributes, int connects = 1) {
    Plugin plugin(root_.string());
    ContextOptions options;
    options.api_version = 12;
    options.log = &KeepLine;
    auto context = plugin.CreateContext(options);
    EXPECT_TRUE(context.ok()) << context.status();
    plugin.SetNetworkAttributes(*context, attributes);
    Handle handle;
    handle.address = *SocketAddress::Parse("192.0.2.1:9");  // TEST-NET-1, RFC 5737
    for (int i = 0; i < connects; ++i) {
      char bytes[kHandleBytes] = {};
      EncodeHandle(handle, bytes);
      auto comm = plugin.Connect(*context, 0, bytes, {});
      EXPECT_TRUE(comm.ok()) << comm.status();
    }
    EXPECT_TRUE(plugin.DestroyContext(*context).ok());
    return TakeLine();
  }

  std::string TakeLine() {
    std::lock_guard<std::mutex> lock(lines_mutex);
    std::string found;
    found_ = 0;
    for (const std::string& line : Lines()) {
      if (line.find("NCCL announces") == std::string::npos) continue;
      found = line;
      ++found_;
    }
    Lines().clear();
    return found;
  }

  std::filesystem::path root_;
  int found_ = 0;  // lines at the last dial
};

NetworkAttributes Sending(int peers, int flows) {
  NetworkAttributes attributes;
  attributes.send.max_concurrent_peers = peers;
  attributes.send.max_flows_per_peer = flows;
  return attributes;
}

TEST_F(AnnouncedFlowsTest, ManyConnectionsHaveFewerLanes) {
  EXPECT_EQ(Dial({}), "");
  EXPECT_EQ(Dial(Sending(4, 2)), "");
  EXPECT_NE(Dial(Sending(4, 8)).find("32 connections at once: 5 lanes;"), std::string::npos);
  EXPECT_NE(Dial(Sending(64, 2)).find("128 connections at once: 5 lanes;"), std::string::npos);
}

TEST_F(AnnouncedFlowsTest, ManyConnectionsHaveOneLine) {
  EXPECT_NE(Dial(Sending(4, 8), 3), "");
  EXPECT_EQ(1, found_);
}

TEST_F(AnnouncedFlowsTest, WhatTheReceivingSideAnnouncesChangesNothing) {
  NetworkAttributes attributes;
  attributes.receive = Sending(64, 8).send;
  EXPECT_EQ(Dial(attributes), "");
}

TEST_F(AnnouncedFlowsTest, TheParameterWins) {
  setenv("TCPX_LANES", "9", 1);
  EXPECT_EQ(Dial(Sending(4, 8)), "");
}

}  // namespace
}  // namespace tcpx
