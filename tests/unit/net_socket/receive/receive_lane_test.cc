// A lane's stream, delivered in reads that end at every byte: the result never depends on where a read ends.
#include "net_socket/receive/receive_lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "tests/unit/net_socket/receive/receive_lane_fixture.h"

namespace tcpx {
namespace {

TEST_P(ReceiveLaneTest, OneReadAsLongAsThePlacesAllow) {
  const Stream stream = MixedStream();
  Receiver receiver(stream, reads());
  receiver.Post(kSlots);
  receiver.Deliver(stream.bytes().size(), {});
  EXPECT_EQ("", receiver.Check());
  receiver.lane().End();
  EXPECT_TRUE(receiver.lane().ended());
  EXPECT_TRUE(receiver.lane().status().ok()) << receiver.lane().status();
}

TEST_P(ReceiveLaneTest, AReadEndsAtEveryByte) {
  const Stream stream = MixedStream();
  const size_t bytes = stream.bytes().size();
  for (size_t split = 1; split < bytes && !HasFailure(); ++split) {
    const std::vector<std::vector<size_t>> variants = {{split}, {split, split + 1}, {split - 1, split, split + 1}};
    for (const std::vector<size_t>& ends : variants) {
      Receiver receiver(stream, reads());
      receiver.Post(kSlots);
      receiver.Deliver(bytes, ends);
      EXPECT_EQ("", receiver.Check()) << "reads end at " << split << " and next to it, " << ends.size();
      EXPECT_EQ(0u, receiver.parked());
    }
  }
}

TEST_P(ReceiveLaneTest, EveryReadBringsOneByte) {
  const Stream stream = MixedStream();
  std::vector<size_t> all;
  for (size_t i = 1; i <= stream.bytes().size(); ++i) all.push_back(i);
  Receiver receiver(stream, reads());
  receiver.Post(kSlots);
  receiver.Deliver(stream.bytes().size(), all);
  EXPECT_EQ("", receiver.Check());
}

// The first `posted` receives are there, each other one is posted when the lane parks on it, at every split.
TEST_P(ReceiveLaneTest, ParksAtEachMessageAndResumes) {
  const Stream stream = MixedStream();
  const size_t messages = stream.messages().size();
  for (size_t posted = 0; posted <= messages && !HasFailure(); ++posted) {
    for (size_t split = 1; split < stream.bytes().size(); split += posted == 0 ? 1 : 7) {
      Receiver receiver(stream, reads());
      receiver.Post(posted);
      receiver.Deliver(stream.bytes().size(), {split});
      EXPECT_EQ("", receiver.Check()) << posted << " posted, split at " << split;
      EXPECT_EQ(messages - posted, receiver.parked());
    }
  }
}

TEST_P(ReceiveLaneTest, AParkedLaneAsksForNothing) {
  const Stream stream = MixedStream();
  Receiver receiver(stream, reads());
  EXPECT_LT(0u, receiver.ReadOnce(stream.bytes().size()));
  iovec iov[ReceiveLane::kIovMax];
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(0, receiver.lane().Prepare(iov));
    EXPECT_TRUE(receiver.lane().parked());
    EXPECT_EQ(0u, receiver.lane().parked_sequence());
  }
  receiver.Post(1);
  receiver.lane().Prepare(iov);
  EXPECT_EQ(1u, receiver.lane().messages_completed());
}

// A look that brings nothing leaves the lane as it was, at every byte, and gives the borrowed staging back.
TEST_P(ReceiveLaneTest, NothingComesAtEveryByte) {
  const Stream stream = MixedStream();
  for (size_t split = 0; split < stream.bytes().size() && !HasFailure(); ++split) {
    Receiver receiver(stream, reads());
    receiver.Post(kSlots);
    receiver.Deliver(split, {});
    for (int i = 0; i < 2; ++i) {
      iovec iov[ReceiveLane::kIovMax];
      EXPECT_LT(0, receiver.lane().Prepare(iov));
      receiver.lane().NothingCame();
    }
    receiver.Deliver(stream.bytes().size(), {});
    EXPECT_EQ("", receiver.Check()) << "nothing came at " << split;
  }
}

// The peer ends the stream after every byte: an error exactly in the middle of a frame.
TEST_P(ReceiveLaneTest, TheStreamEndsAtEveryByte) {
  const Stream stream = MixedStream();
  for (size_t end = 0; end <= stream.bytes().size() && !HasFailure(); ++end) {
    Receiver receiver(stream, reads());
    receiver.Post(kSlots);
    receiver.Deliver(end, {});
    ASSERT_EQ(end, receiver.at());
    const auto& boundaries = stream.boundaries();
    const bool between_frames = std::find(boundaries.begin(), boundaries.end(), end) != boundaries.end();
    EXPECT_EQ(between_frames, receiver.lane().between_frames()) << end;
    receiver.lane().End();
    EXPECT_EQ(between_frames, receiver.lane().status().ok()) << end << ": " << receiver.lane().status();
    if (!between_frames) {
      EXPECT_EQ(absl::StatusCode::kUnavailable, receiver.lane().status().code());
    }
    iovec iov[ReceiveLane::kIovMax];
    EXPECT_EQ(0, receiver.lane().Prepare(iov));
  }
}

TEST_P(ReceiveLaneTest, SeededMessagesAndReads) {
  Rng rng(TestSeed());
  for (int round = 0; round < 100 / TimeScale() && !HasFailure(); ++round) {
    Stream stream;
    for (int i = 0; i < 20; ++i) {
      const size_t bytes = rng.OneIn(10) ? rng.Between(0, 300000) : rng.Between(0, 2000);
      const uint16_t padding = rng.OneIn(3) ? static_cast<uint16_t>(rng.Between(1, 65535)) : uint16_t{0};
      std::vector<size_t> ends;
      for (size_t end = 0; end < bytes && rng.OneIn(2);) {
        end = std::min(bytes, end + rng.Between(1, bytes));
        ends.push_back(end);
      }
      if (ends.empty() || ends.back() != bytes) ends.push_back(bytes);
      stream.MessageInChunks(Text(bytes, i), ends, padding);
      if (rng.OneIn(4)) stream.Record(static_cast<FrameKind>(rng.Between(68, 255)), Text(rng.Between(0, 65536), i));
    }
    std::vector<size_t> ends;
    for (size_t at = 0; at < stream.bytes().size();) ends.push_back(at += rng.Between(1, rng.OneIn(2) ? 100 : 200000));
    Receiver receiver(stream, reads());
    receiver.Post(rng.Between(0, 20));
    receiver.Deliver(stream.bytes().size(), ends);
    EXPECT_EQ("", receiver.Check()) << "round " << round;
  }
}

// Bytes after a payload are left to the kernel, so that they need not be copied again.
TEST(ReceiveLaneReadAheadTest, LittleAfterAHeaderAndNothingAfterAPayload) {
  Stream stream;
  stream.Message(Text(100000, 1));
  Receiver receiver(stream, Reads::kLittleAhead);
  receiver.Post(1);
  EXPECT_EQ(4096u, receiver.ReadOnce(stream.bytes().size()));
  iovec iov[ReceiveLane::kIovMax];
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  EXPECT_EQ(100000 - (4096 - kHeaderBytes), iov[0].iov_len);
  receiver.lane().ReadAhead(true);
  EXPECT_EQ(2, receiver.lane().Prepare(iov));
}

// A peer that sends and sends, and nobody wants it: lane 0 takes its stage full, and a bulk lane its own few bytes.
TEST_P(ReceiveLaneTest, HoldsABoundedPartOfWhatNobodyWants) {
  Stream stream;
  for (int i = 0; i < 4000; ++i) stream.Message(Text(100, i));
  Receiver receiver(stream, GetParam());
  size_t held = 0;
  for (size_t got = 1; got > 0; held += got) got = receiver.ReadOnce(stream.bytes().size());
  const bool bulk = GetParam() == Reads::kHeaderOnly || GetParam() == Reads::kForFlagLines;
  EXPECT_LE(held, bulk ? size_t{128} : size_t{128} << 10);
  EXPECT_GE(held, kHeaderBytes);
}

// The staging that a bulk lane borrows is back once the payload is there.
TEST(ReceiveLaneFlagLinesTest, ABulkLaneBorrowsForThePayloadAlone) {
  Stream stream;
  stream.Message("");
  stream.Message(Text(300000, 1));
  Receiver receiver(stream, Reads::kForFlagLines);
  receiver.Post(2);
  iovec iov[ReceiveLane::kIovMax];
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  const void* const beside = iov[0].iov_base;
  receiver.Deliver(2 * kHeaderBytes, {});
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  EXPECT_EQ(kStageBytes, iov[0].iov_len);
  receiver.Deliver(stream.bytes().size(), {});
  EXPECT_EQ("", receiver.Check());
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  EXPECT_EQ(beside, iov[0].iov_base);
}

INSTANTIATE_TEST_SUITE_P(Staging, ReceiveLaneTest,
                         ::testing::Values(Reads::kHeaderOnly, Reads::kStaged, Reads::kLittleAhead,
                                           Reads::kForFlagLines, Reads::kFlagLinesAhead),
                         ReadsName);

}  // namespace
}  // namespace tcpx
