// What one library of a process tells the other of other hosts' clocks.
#include "common/clock_notes.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/kept_log.h"

namespace tcpx {
namespace {

TEST(ClockNotesTest, AReaderFindsThemForEveryWriter) {
  ClockNotesReader reader;
  EXPECT_TRUE(reader.Read().empty());
  auto notes = std::make_unique<ClockNotes>();
  std::vector<ClockNote> read = reader.Read();
  ASSERT_EQ(1u, read.size());
  EXPECT_EQ(notes->self(), read[0].self);
  EXPECT_EQ("", read[0].peer);
  EXPECT_TRUE(reader.Read().empty()) << "twice the same";
  notes->Write("b/1/2", 10, -20, 30);
  read = reader.Read();
  ASSERT_EQ(1u, read.size());
  EXPECT_EQ(notes->self(), read[0].self);
  EXPECT_EQ("b/1/2", read[0].peer);
  EXPECT_EQ(10, read[0].at_ns);
  EXPECT_EQ(-20, read[0].offset_ns);
  EXPECT_EQ(30, read[0].round_trip_ns);
  const std::string before = notes->self();
  notes.reset();
  EXPECT_TRUE(reader.Read().empty());
  const ClockNotes again;
  EXPECT_NE(before, again.self());
  EXPECT_EQ(1u, reader.Read().size());
}

// More than there is room for, while one reads: nothing that is read is mixed up, and the latest are there.
TEST(ClockNotesTest, ManyWriteForLongAndTheLatestAreThere) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10000;
  ClockNotes notes;
  std::vector<std::thread> threads;
  std::atomic<int> left{kThreads};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&notes, &left, i] {
      const std::string peer = absl::StrCat("peer/", i, "/", std::string(40 + i, 'x'));
      for (int round = 0; round < kRounds; ++round) notes.Write(peer, round, i, round);
      --left;
    });
  }
  ClockNotesReader reader;
  std::vector<int64_t> latest(kThreads, -1);
  size_t found = 0;
  for (bool last = false; !last;) {
    last = left == 0;
    for (const ClockNote& note : reader.Read()) {
      ASSERT_EQ(notes.self(), note.self);
      if (note.peer.empty()) continue;
      ++found;
      ASSERT_GE(note.offset_ns, 0);
      ASSERT_LT(note.offset_ns, kThreads);
      EXPECT_EQ(absl::StrCat("peer/", note.offset_ns, "/", std::string(40 + note.offset_ns, 'x')), note.peer);
      EXPECT_EQ(note.at_ns, note.round_trip_ns);
      EXPECT_GT(note.at_ns, latest[note.offset_ns]);
      latest[note.offset_ns] = note.at_ns;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kRounds - 1, *std::max_element(latest.begin(), latest.end()));
  EXPECT_LE(found, size_t{kThreads} * kRounds);
}

TEST(ClockNotesTest, WhoComesLateFindsTheLatest) {
  ClockNotes notes;
  constexpr int kRounds = 40000;
  for (int round = 0; round < kRounds; ++round) notes.Write("peer/1/2", round, -round, 7);
  const std::vector<ClockNote> read = ClockNotesReader().Read();
  ASSERT_GT(read.size(), 1000u);
  EXPECT_LT(read.size(), size_t{kRounds});
  EXPECT_EQ(notes.self(), read[0].self);
  EXPECT_EQ("", read[0].peer);
  for (size_t i = 1; i < read.size(); ++i) {
    EXPECT_EQ(kRounds - static_cast<int64_t>(read.size() - i), read[i].at_ns);
    EXPECT_EQ(-read[i].at_ns, read[i].offset_ns);
  }
}

// A process may have ten thousand descriptors: one that was found is not looked for again each time.
TEST(ClockNotesTest, DescriptorsAreLookedThroughNowAndThenOnly) {
  const ClockNotes notes;
  ClockNotesReader reader;
  for (int i = 0; i < 3 * ClockNotesReader::kScanEvery; ++i) (void)reader.Read();
  EXPECT_EQ(3, reader.scans());
  const ClockNotes another;
  bool found = false;
  for (int i = 0; i < ClockNotesReader::kScanEvery; ++i) {
    for (const ClockNote& note : reader.Read()) found |= note.self == another.self();
  }
  EXPECT_TRUE(found);
}

// The last word of a writer that is gone since.
TEST(ClockNotesTest, WhatTheDeadWroteIsRead) {
  ClockNotesReader reader;
  auto notes = std::make_unique<ClockNotes>();
  EXPECT_EQ(1u, reader.Read().size());
  notes->Write("b/1/2", 10, -20, 30);
  notes.reset();
  EXPECT_EQ(1u, reader.Read().size());
  EXPECT_TRUE(reader.Read().empty());
}

TEST(ClockNotesTest, WithoutADescriptorItIsSaidOnceAndNothingElse) {
  KeptLog log;
  rlimit before{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  {
    ClockNotes notes;
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
    for (int i = 0; i < 3; ++i) notes.Write("b/1/2", i, i, i);
    EXPECT_TRUE(ClockNotesReader().Read().empty());
  }
  EXPECT_EQ(1u, log.Warnings().size());
}

TEST(ClockNotesTest, NonsenseIsNoNote) {
  ClockNotes notes;
  ClockNotesReader reader;
  for (const std::string& wrong : {std::string(), std::string(kClockNameBytes, 'x'), std::string(5000, 'x')}) {
    notes.Write(wrong, 1, -2, 3);
  }
  const std::string longest(kClockNameBytes - 1, 'x');
  notes.Write(longest, 1, -2, 3);
  const std::vector<ClockNote> read = reader.Read();
  ASSERT_EQ(2u, read.size());
  EXPECT_EQ("", read[0].peer);
  EXPECT_EQ(longest, read[1].peer);
}

}  // namespace
}  // namespace tcpx
