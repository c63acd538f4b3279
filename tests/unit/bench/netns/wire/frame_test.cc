#include "bench/netns/wire/frame.h"

#include <vector>

#include "bench/netns/wire/checksum.h"
#include "gtest/gtest.h"
#include "tests/unit/bench/netns/wire/samples.h"

namespace tcpx {
namespace wire {
namespace {

class FrameTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr size_t kPayload = 5 * kSampleSegment + 100;

  BufferPool pool_;
  const Frame frame_ = SampleFrame(GetParam(), kPayload, 4000, &pool_);
  const PacketInfo info_ = *ParsePacket(frame_.data.get(), frame_.bytes);
};

TEST_P(FrameTest, CountsSegments) {
  EXPECT_EQ(SegmentsOf(frame_, info_), 6);
  const Frame small = SampleFrame(GetParam(), 100, 4000, &pool_);
  EXPECT_EQ(SegmentsOf(small, *ParsePacket(small.data.get(), small.bytes)), 1);
}

TEST_P(FrameTest, WholeFrameGoesOnUntouched) {
  const Piece piece = CutPiece(frame_, info_, 0, 6);
  EXPECT_EQ(piece.header_bytes, 0);
  EXPECT_EQ(piece.payload, frame_.data.get());
  EXPECT_EQ(piece.payload_bytes, frame_.bytes);
  EXPECT_EQ(piece.offload.gso_size, kSampleSegment);
  EXPECT_EQ(piece.wire_bytes, kPayload + 6 * info_.header_bytes);
}

TEST_P(FrameTest, PiecesTogetherHoldThePayloadInOrder) {
  size_t at = 0;
  for (const auto& [first, count] : std::vector<std::pair<int, int>>{{0, 1}, {1, 3}, {4, 2}}) {
    const Piece piece = CutPiece(frame_, info_, first, count);
    size_t bytes = 0;
    const Bytes written = Written(piece, &bytes);
    const uint8_t* tcp = written.get() + info_.ip_bytes;
    EXPECT_EQ(Read32(tcp + 4), static_cast<uint32_t>(kSampleSequence + at));
    for (size_t i = info_.header_bytes; i < bytes; ++i, ++at) {
      ASSERT_EQ(written.get()[i], static_cast<uint8_t>(at * 7)) << "byte " << at;
    }
  }
  EXPECT_EQ(at, kPayload);
}

TEST_P(FrameTest, PieceHasHeadersOfItsOwn) {
  size_t bytes = 0;
  const Piece piece = CutPiece(frame_, info_, 1, 3);
  const Bytes written = Written(piece, &bytes);
  EXPECT_EQ(bytes, info_.header_bytes + 3 * kSampleSegment);
  const uint8_t* ip = written.get();
  if (GetParam()) {
    EXPECT_EQ(Read16(ip + 4), bytes - 40);
  } else {
    EXPECT_EQ(Read16(ip + 2), bytes);
    EXPECT_EQ(Read16(ip + 4), 0xffff);  // the first segment's and one
    EXPECT_EQ(Checksum(ip, 20), 0);
  }
  const size_t address_bytes = GetParam() ? 16 : 4;
  const auto transport = static_cast<uint32_t>(bytes - info_.ip_bytes);
  EXPECT_EQ(Read16(ip + info_.ip_bytes + 16),
            Fold(PseudoHeader(ip + (GetParam() ? 8 : 12), address_bytes, 6, transport)));
  EXPECT_EQ(piece.offload.gso_size, kSampleSegment);
  EXPECT_EQ(piece.offload.checksum_start, info_.ip_bytes);
}

TEST_P(FrameTest, FlagsStayWithTheFirstAndTheLastSegment) {
  size_t bytes = 0;
  const size_t flags = info_.ip_bytes + 13;
  EXPECT_EQ(Written(CutPiece(frame_, info_, 0, 2), &bytes).get()[flags], 0x80 | 0x10);
  EXPECT_EQ(Written(CutPiece(frame_, info_, 2, 2), &bytes).get()[flags], 0x10);
  EXPECT_EQ(Written(CutPiece(frame_, info_, 4, 2), &bytes).get()[flags], 0x10 | 0x08 | 0x01);
}

TEST_P(FrameTest, SingleSegmentIsNoGsoFrame) {
  const Piece piece = CutPiece(frame_, info_, 5, 1);
  EXPECT_EQ(piece.offload.gso_type, kNoGso);
  EXPECT_EQ(piece.offload.gso_size, 0);
  EXPECT_EQ(piece.payload_bytes, 100);
}

INSTANTIATE_TEST_SUITE_P(Families, FrameTest, testing::Bool());

TEST(BufferPool, UsesABufferAgain) {
  BufferPool pool;
  const uint8_t* first = pool.Large().get();
  EXPECT_EQ(pool.Large().get(), first);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
