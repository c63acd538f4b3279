// What one library of a process tells the other of other hosts' clocks.
#include "common/clock_notes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tcpx {
namespace {

TEST(ClockNotesTest, AReaderFindsThemWhoeverWrites) {
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

TEST(ClockNotesTest, ManyWriteWholeLinesUpToTheBound) {
  ClockNotes notes;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&notes] {
      for (int round = 0; round < 30000; ++round) notes.Write("peer/1/" + std::string(40, 'x'), round, round, round);
    });
  }
  ClockNotesReader reader;
  size_t found = 0;
  for (std::thread& thread : threads) {
    found += reader.Read().size();
    thread.join();
  }
  found += reader.Read().size();
  const size_t line = notes.self().size() + 40;
  EXPECT_GT(found, 1000u);
  EXPECT_LE(found, ClockNotes::kBytesMax / line);
}

TEST(ClockNotesTest, NonsenseIsNoNote) {
  ClockNote note;
  EXPECT_TRUE(ParseClockNote("a", &note));
  EXPECT_TRUE(ParseClockNote("a\tb\t1\t-2\t3", &note));
  for (const char* wrong :
       {"", "a\tb", "a\tb\t1\t2", "a\tb\t1\t2\tx", "\tb\t1\t2\t3", "a\t\t1\t2\t3", "a\tb\t1\t2\t3\t4"}) {
    EXPECT_FALSE(ParseClockNote(wrong, &note)) << wrong;
  }
}

}  // namespace
}  // namespace tcpx
