// Where lanes may go whose own path does not serve.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "net_socket/connect/resume_dials.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

class LanePathsTest : public ::testing::Test {
 protected:
  LanePath Path(int nic, const std::string& peer) { return {&nics_[nic], *SocketAddress::Parse(peer)}; }
  // By the index of its interface; -1: none.
  int Other(const LanePaths& paths, const LanePath& taken, int turn = 0) {
    const LanePath* const other = paths.Other(
        taken, turn, [this](const LanePath& path) { return out_.count(path.nic) == 0; },
        [this](int lane) { return lost_.count(lane) == 0; });
    return other == nullptr ? -1 : static_cast<int>(other->nic - nics_);
  }

  Nic nics_[4];
  std::set<const Nic*> out_;
  std::set<int> lost_;
};

TEST_F(LanePathsTest, OneInterfaceHasNoOther) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(0, "10.0.0.2:1")}, 2);
  EXPECT_EQ(-1, Other(paths, paths.at(0)));
  EXPECT_FALSE(paths.away(0));
}

TEST_F(LanePathsTest, AnotherAddressOfThePeerIsAnotherPath) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(0, "10.0.1.2:1")}, 2);
  EXPECT_EQ(0, Other(paths, paths.at(0)));
}

TEST_F(LanePathsTest, TheOneWithTheFewestLanesFirst) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(1, "10.0.1.2:1"), Path(1, "10.0.1.2:1"), Path(2, "10.0.2.2:1")}, 4);
  EXPECT_EQ(2, Other(paths, paths.at(0)));
  EXPECT_EQ(1, Other(paths, paths.at(0), 1));
  EXPECT_EQ(2, Other(paths, paths.at(0), 2));
  paths.Place(0, paths.at(3));
  EXPECT_TRUE(paths.away(0));
  paths.Place(2, paths.at(3));
  EXPECT_EQ(1, Other(paths, paths.own(0)));
  paths.Place(0, paths.own(0));
  EXPECT_FALSE(paths.away(0));
}

// Else it would be dialled for as long as its connection is up.
TEST_F(LanePathsTest, ALaneThatIsClosedWaitsForNoPath) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(1, "10.0.1.2:1")}, 2);
  paths.Place(0, paths.at(1));
  ASSERT_TRUE(paths.away(0));
  paths.Close(0);
  EXPECT_FALSE(paths.away(0));
}

TEST_F(LanePathsTest, PlacesAndClosedLanesDoNotStandAnywhere) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(1, "10.0.1.2:1"), Path(1, "10.0.1.2:1"), Path(2, "10.0.2.2:1"),
                   Path(2, "10.0.2.2:1"), Path(2, "10.0.2.2:1")},
                  4);
  EXPECT_EQ(2, Other(paths, paths.at(0)));
  paths.Close(3);
  EXPECT_EQ(1, Other(paths, paths.at(0)));
  paths.Place(4, paths.own(4));
  EXPECT_EQ(2, Other(paths, paths.at(0)));
}

TEST_F(LanePathsTest, WhereNoLaneIsIsLast) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(1, "10.0.1.2:1"), Path(2, "10.0.2.2:1"), Path(2, "10.0.2.2:1")}, 4);
  lost_ = {0, 1};
  EXPECT_EQ(2, Other(paths, paths.at(0)));
  EXPECT_EQ(1, Other(paths, paths.at(0), 1));
}

TEST_F(LanePathsTest, NoneWhoseInterfaceIsOut) {
  LanePaths paths({Path(0, "10.0.0.2:1"), Path(1, "10.0.1.2:1"), Path(2, "10.0.2.2:1")}, 3);
  out_ = {&nics_[1]};
  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(2, Other(paths, paths.at(0), turn));
  out_ = {&nics_[1], &nics_[2]};
  EXPECT_EQ(-1, Other(paths, paths.at(0)));
}

// A connection that begins with all the lanes that the last one found may close some of them.
TEST(PilotedLanesTest, LanesMayBePilotedUpToAllPlaces) {
  EXPECT_FALSE(LanesMayBePiloted(1));
  EXPECT_TRUE(LanesMayBePiloted(2));
  EXPECT_TRUE(LanesMayBePiloted(kLanesPilotedMax));
  EXPECT_FALSE(LanesMayBePiloted(kLanesPilotedMax + 1));
}

}  // namespace
}  // namespace tcpx
