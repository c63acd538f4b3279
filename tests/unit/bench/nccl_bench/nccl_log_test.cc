#include "bench/nccl_bench/nccl_log.h"

#include <string>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// Lines as libnccl 2.28.9 and the plugin write them.
constexpr char kTcpx[] =
    "node:1:1 [0] NCCL INFO Assigned NET plugin tcpx to comm\n"
    "node:1:1 [0] NCCL INFO Using network tcpx\n"
    "node:1:9 [0] NCCL INFO Channel 00/02 : 0 1\n"
    "node:1:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/tcpx/0\n"
    "node:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/tcpx/0(1)/GDRDMA\n";
constexpr char kBytes[] =
    "node:1:1 [0] NCCL INFO NET/tcpx: comm 1a: 2 connections, sent 12 messages of 4096 bytes, received 10 of 2048, "
    "fine\n";
constexpr char kNoBytes[] =
    "node:1:1 [0] NCCL INFO NET/tcpx: comm 1a: 0 connections, sent 0 messages of 0 bytes, received 0 of 0\n";

TEST(ParseNcclLog, FindsNetworksChannelsAndBytes) {
  const TransportLog log = ParseNcclLog(std::string(kTcpx) + kBytes + kBytes +
                                        "node:1:9 [0] NCCL INFO Channel 00 : 0[0] -> 2[2] via P2P/CUMEM\n");
  EXPECT_EQ(log.networks, std::set<std::string>{"tcpx"});
  EXPECT_EQ(log.channel_nets, std::set<std::string>{"tcpx"});
  EXPECT_EQ(log.net_channels, 2);
  EXPECT_EQ(log.other_channels, 1);
  EXPECT_EQ(log.byte_lines, 2);
  EXPECT_EQ(log.bytes, 2 * (4096u + 2048u));
}

TEST(JudgeTransport, RightOnesPass) {
  EXPECT_TRUE(JudgeTransport(ParseNcclLog(kTcpx), "tcpx", true).ok()) << "without counters the channels are the proof";
  EXPECT_TRUE(JudgeTransport(ParseNcclLog(std::string(kTcpx) + kBytes), "TCPX", true).ok());
  EXPECT_TRUE(JudgeTransport(ParseNcclLog("Using network tcpx\n"), "tcpx", false).ok());
}

TEST(JudgeTransport, EverythingElseFails) {
  EXPECT_FALSE(JudgeTransport(ParseNcclLog(""), "tcpx", false).ok());
  EXPECT_FALSE(JudgeTransport(ParseNcclLog(kTcpx), "Socket", true).ok());
  // The second communicator came back without the plugin.
  EXPECT_FALSE(
      JudgeTransport(ParseNcclLog(std::string(kTcpx) + "NCCL INFO Using network Socket\n"), "tcpx", true).ok());
  EXPECT_FALSE(
      JudgeTransport(ParseNcclLog(std::string(kTcpx) + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"), "tcpx",
                     true)
          .ok());
  const std::string memory = "Using network tcpx\nChannel 00 : 0[0] -> 1[1] via SHM/direct/direct\n";
  EXPECT_FALSE(JudgeTransport(ParseNcclLog(memory), "tcpx", true).ok());
  EXPECT_TRUE(JudgeTransport(ParseNcclLog(memory), "tcpx", false).ok());
  EXPECT_FALSE(JudgeTransport(ParseNcclLog(std::string(kTcpx) + kNoBytes), "tcpx", true).ok());
}

TEST(DescribeTransport, SaysWhetherThereAreCounters) {
  EXPECT_EQ(DescribeTransport(ParseNcclLog(kTcpx), "tcpx"), "tcpx: 2 channels, no byte counters in the log");
  EXPECT_EQ(DescribeTransport(ParseNcclLog(std::string(kTcpx) + kBytes), "tcpx"), "tcpx: 2 channels, 6144 bytes moved");
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
