#include "bench/netns/wire/packet.h"

#include <algorithm>
#include <map>

#include "gtest/gtest.h"
#include "tests/unit/bench/netns/wire/samples.h"

namespace tcpx {
namespace wire {
namespace {

TEST(ParsePacket, FindsTheFlowOfBothFamilies) {
  BufferPool pool;
  for (bool ipv6 : {false, true}) {
    const Frame frame = SampleFrame(ipv6, 100, 4000, &pool);
    const std::optional<PacketInfo> info = ParsePacket(frame.data.get(), frame.bytes);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->flow.source_port, 4000);
    EXPECT_EQ(info->flow.destination_port, 80);
    EXPECT_EQ(info->flow.protocol, 6);
    EXPECT_EQ(info->flow.destination[ipv6 ? 15 : 3], 2);
    EXPECT_EQ(info->header_bytes, ipv6 ? 72 : 52);
  }
}

TEST(ParsePacket, RefusesWhatIsCutShort) {
  BufferPool pool;
  for (bool ipv6 : {false, true}) {
    const Frame frame = SampleFrame(ipv6, 100, 4000, &pool);
    const size_t ip_bytes = ipv6 ? 40 : 20;
    for (size_t bytes = 0; bytes < frame.bytes; ++bytes) {
      const std::optional<PacketInfo> info = ParsePacket(frame.data.get(), bytes);
      EXPECT_EQ(info.has_value(), bytes >= ip_bytes) << bytes;
      EXPECT_EQ(info && info->header_bytes > 0, bytes >= ip_bytes + 32) << bytes;
    }
  }
}

TEST(ParsePacket, FragmentHasNoPorts) {
  BufferPool pool;
  const Frame frame = SampleFrame(false, 100, 4000, &pool);
  frame.data.get()[7] = 1;
  const std::optional<PacketInfo> info = ParsePacket(frame.data.get(), frame.bytes);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->flow.source_port, 0);
  EXPECT_EQ(info->header_bytes, 0);
}

FlowKey KeyOf(uint16_t port) {
  FlowKey key;
  key.source[0] = 10;
  key.source_port = port;
  key.protocol = 6;
  return key;
}

TEST(FlowHash, IsTheSameForTheSameSeedOnly) {
  EXPECT_EQ(FlowHash(KeyOf(1), 1), FlowHash(KeyOf(1), 1));
  EXPECT_NE(FlowHash(KeyOf(1), 1), FlowHash(KeyOf(1), 2));
  EXPECT_NE(FlowHash(KeyOf(1), 1), FlowHash(KeyOf(2), 1));
}

TEST(FlowHash, SpreadsPortsNextToEachOther) {
  std::map<uint64_t, int> flows;
  for (uint16_t port = 40000; port < 40000 + 8 * 200; ++port) ++flows[FlowHash(KeyOf(port), 1) % 8];
  ASSERT_EQ(flows.size(), 8);
  for (const auto& [path, count] : flows) EXPECT_NEAR(count, 200, 60) << "path " << path;
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
