// The record by which a dialler says that all its lanes are up.
#include <gtest/gtest.h>

#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

TEST(WireEstablishedTest, ThatRecordAloneAndWithoutABody) {
  char bytes[kHeaderBytes];
  EncodeEstablished(bytes);
  EXPECT_EQ(69, bytes[0]);
  EXPECT_TRUE(IsEstablished(bytes));
  for (const FrameHeader& other :
       {FrameHeader(), FrameHeader{FrameKind::kBye}, FrameHeader{FrameKind::kEstablished, 0, 1},
        FrameHeader{FrameKind::kEstablished, 1}, FrameHeader{static_cast<FrameKind>(2)}}) {
    EncodeHeader(other, bytes);
    EXPECT_FALSE(IsEstablished(bytes)) << static_cast<int>(other.kind);
  }
}

}  // namespace
}  // namespace tcpx
