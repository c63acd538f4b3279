// Who has a ticket completes connections that nobody accepts, begins others, and dials health sockets for none: all of
// them together get a quarter of the descriptors, and peers get through.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/by_hand.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr rlim_t kLimit = 512;
constexpr size_t kQuarter = kLimit / 4;
constexpr char kTold[] = "have a quarter of the descriptors";

// The hello of connection `number`, from a process of its own.
Hello NumberedHello(size_t number, HelloKind kind, uint16_t lanes) {
  Hello hello;
  hello.kind = kind;
  hello.features = kFeatureEstablished;
  hello.lanes = lanes;
  for (size_t i = 0; i < sizeof(uint32_t); ++i) {
    hello.connection_id[i] = hello.connection_id[8 + i] = static_cast<uint8_t>((number + 1) >> (8 * i));
  }
  return hello;
}

class Crowd {
 public:
  // From `source`, an address of this host, or from wherever (null).
  explicit Crowd(const char* handle, const char* source = nullptr) : handle_(handle), source_(source) {}

  // False: there was no room for it. What is accepted stays; `says` is what it says then.
  bool Comes(HelloKind kind, uint16_t lanes, const std::string& says = "") {
    return Says(NumberedHello(came_++, kind, lanes), says);
  }
  // One more lane of connection `number`, which has come.
  bool LaneComes(size_t number, uint16_t lane, uint16_t lanes) {
    Hello hello = NumberedHello(number, HelloKind::kLane, lanes);
    hello.lane = lane;
    return Says(hello);
  }
  // How many do, at most so many as there are descriptors.
  size_t Fills(HelloKind kind, uint16_t lanes, const std::string& says = "") {
    size_t count = 0;
    while (count < kLimit && Comes(kind, lanes, says)) ++count;
    return count;
  }
  // The first socket that came, and is here, says more.
  void FirstSays(const std::string& bytes) { TCPX_REQUIRE(visitors_.front().Say(bytes)); }
  void LeaveFirst() { visitors_.pop_front(); }
  void Leave() { visitors_.clear(); }

  bool Says(const Hello& hello, const std::string& more = "") {
    Visitor visitor(handle_, source_);
    const HelloStatus status = StatusFor(&visitor, HelloFor(handle_, hello));
    if (status == HelloStatus::kBusy) return false;
    TCPX_REQUIRE(status == HelloStatus::kAccepted && visitor.Say(more), HelloStatusText(status));
    visitors_.push_back(std::move(visitor));
    return true;
  }

 private:
  const char* const handle_;
  const char* const source_;
  size_t came_ = 0;
  std::deque<Visitor> visitors_;
};

class UnacceptedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.threads = 2, .lanes = 2}.Apply();
    setenv("TCPX_HELLO_TIMEOUT", "600", 1);  // Far beyond the test: no deadline does the work.
  }
};

void SetLimit(rlim_t limit = kLimit) {
  const rlimit both{limit, limit};
  TCPX_REQUIRE(setrlimit(RLIMIT_NOFILE, &both) == 0);
}

// Peers of other listens get through, and all is given back with the listen.
void RequirePeersAndTheEnd(Rank* rank, ListenByHand* listening, Crowd* crowd) {
  rank->Close(rank->ConnectToSelf());
  TCPX_REQUIRE(CountInLog(kTold) == 1, LogText());
  crowd->Leave();
  listening->Close();
}

TEST_F(UnacceptedTest, CompleteConnectionsThatNobodyAccepts) {
  EXPECT_EQ("", RunAlone([] {
              SetLimit();
              Rank rank;
              ListenByHand listening(&rank);
              Crowd crowd(listening.handle);
              const size_t came = crowd.Fills(HelloKind::kLane, 1, Established());
              TCPX_REQUIRE(came == kQuarter / 2, came);
              rank.Close(rank.ConnectToSelf());
              rank.CloseReceive(listening.AcceptWithin());
              TCPX_REQUIRE(crowd.Comes(HelloKind::kLane, 1), "one was accepted, and another may come");
              RequirePeersAndTheEnd(&rank, &listening, &crowd);
            }));
}

// Each holds the lane that has come, and a place for a health socket; it comes while there is room for all its lanes.
TEST_F(UnacceptedTest, ConnectionsThatLackLanes) {
  for (const uint16_t lanes : {2, 64}) {
    EXPECT_EQ("", RunAlone([lanes] {
                SetLimit();
                Rank rank;
                ListenByHand listening(&rank);
                Crowd crowd(listening.handle);
                const size_t came = crowd.Fills(HelloKind::kLane, lanes);
                TCPX_REQUIRE(came == (kQuarter - (lanes + 1u)) / 2 + 1, came);
                RequirePeersAndTheEnd(&rank, &listening, &crowd);
              }))
        << lanes << " lanes";
  }
}

// The same bound, lane by lane. One connection of the listen gets all its lanes, and once that is accepted another one.
TEST_F(UnacceptedTest, LanesAreCountedAsTheyCome) {
  EXPECT_EQ("", RunAlone([] {
              constexpr uint16_t kLanes = 40;
              SetLimit();
              Rank rank;
              ListenByHand listening(&rank);
              Crowd crowd(listening.handle);
              for (size_t i = 0; i < 20; ++i) TCPX_REQUIRE(crowd.Comes(HelloKind::kLane, kLanes));
              size_t lanes = 20;
              for (size_t i = 1; i < 20; ++i) {
                for (uint16_t lane = 1; lane < kLanes && crowd.LaneComes(i, lane, kLanes); ++lane) ++lanes;
              }
              TCPX_REQUIRE(lanes + 20 == kQuarter, lanes, " lanes of 20 connections");
              TCPX_REQUIRE(!crowd.Comes(HelloKind::kLane, 1));
              for (uint16_t lane = 1; lane < kLanes; ++lane) {
                TCPX_REQUIRE(crowd.LaneComes(0, lane, kLanes), "lane ", lane, " of the first");
              }
              TCPX_REQUIRE(!crowd.LaneComes(19, 1, kLanes));
              crowd.FirstSays(Established());
              rank.CloseReceive(listening.AcceptWithin());
              const Deadline deadline;
              for (uint16_t lane = 1; lane < kLanes; ++lane) {
                while (!crowd.LaneComes(19, lane, kLanes))
                  TCPX_REQUIRE(deadline.Yield(), "lane ", lane, " of the next");
              }
              RequirePeersAndTheEnd(&rank, &listening, &crowd);
            }));
}

// By a connection that heals, once it is up.
TEST_F(UnacceptedTest, LanesThatAreOpenedLaterCountToo) {
  EXPECT_EQ("", RunAlone([] {
              SetLimit();
              Rank rank;
              ListenByHand listening(&rank);
              Crowd crowd(listening.handle);
              TCPX_REQUIRE(crowd.Comes(HelloKind::kLane, 1), "the one that gets all its lanes");
              Hello hello = NumberedHello(kLimit, HelloKind::kLane, 2);
              hello.features |= kFeatureHealth | kFeatureHeal | kFeatureHealHealth | kFeaturePilot;
              std::vector<int> fds = {DialByHand(listening.handle, hello)};
              hello.lane = 1;
              fds.push_back(DialByHand(listening.handle, hello));
              hello.kind = HelloKind::kHealth;
              fds.push_back(DialByHand(listening.handle, hello));
              const std::string word = Established();
              TCPX_REQUIRE(send(fds[0], word.data(), word.size(), MSG_NOSIGNAL) > 0);
              GoRound(listening.handle);
              TCPX_REQUIRE(crowd.Fills(HelloKind::kHealth, 1) > 0);
              hello.kind = HelloKind::kResume;
              hello.lane = 5;
              hello.attempt = 1;
              Visitor refused(listening.handle);
              TCPX_REQUIRE(StatusFor(&refused, HelloFor(listening.handle, hello)) == HelloStatus::kBusy);
              crowd.FirstSays(Established());
              void* const comms[] = {listening.AcceptWithin(), listening.AcceptWithin()};
              hello.attempt = 2;
              fds.push_back(DialByHand(listening.handle, hello));
              for (void* comm : comms) rank.CloseReceive(comm);
              for (const int fd : fds) close(fd);
              RequirePeersAndTheEnd(&rank, &listening, &crowd);
            }));
}

TEST_F(UnacceptedTest, HealthSocketsThatNobodyUses) {
  EXPECT_EQ("", RunAlone([] {
              SetLimit();
              Rank rank;
              ListenByHand listening(&rank);
              Crowd crowd(listening.handle);
              const size_t came = crowd.Fills(HelloKind::kHealth, 1);
              TCPX_REQUIRE(came == kQuarter, came);
              TCPX_REQUIRE(crowd.Comes(HelloKind::kLane, 1), "a listen has one connection");
              TCPX_REQUIRE(!crowd.Comes(HelloKind::kHealth, 1));
              for (int i = 0; i < 3; ++i) crowd.LeaveFirst();
              const Deadline deadline;
              while (!crowd.Comes(HelloKind::kHealth, 1)) TCPX_REQUIRE(deadline.Yield(), "places are free");
              RequirePeersAndTheEnd(&rank, &listening, &crowd);
            }));
}

// Polls a connect to the listen comm and its accept, and lets a crowd come meanwhile, until both ends are there.
void RequireThrough(Rank* rank, const ListenByHand& listening, uint16_t lanes, Crowd* crowd) {
  char handle[kHandleBytesMax];
  std::memcpy(handle, listening.handle, sizeof(handle));
  Ends ends;
  const Deadline deadline(30);
  while (ends.send == nullptr || ends.receive == nullptr) {
    TCPX_REQUIRE(deadline.Yield(), LogText());
    for (int i = 0; i < 3; ++i) (void)crowd->Comes(HelloKind::kLane, lanes);
    if (ends.send == nullptr) {
      TCPX_REQUIRE(rank->net().Connect(rank->context(), 0, handle, &ends.send) == ncclSuccess, LogText());
    }
    if (ends.receive == nullptr) {
      TCPX_REQUIRE(rank->net().Accept(listening.listen, &ends.receive) == ncclSuccess, LogText());
    }
  }
  rank->Close(ends);
}

// A stranger has all room and the free place with connections that lack a lane, or the word that all are up, and comes
// again all the time. Before, he had the place for more than a minute, or for ever, and then again.
TEST_F(UnacceptedTest, AStrangerThatComesAgainAndAgainKeepsNoPeerAway) {
  for (const uint16_t lanes : {2, 1}) {
    EXPECT_EQ("", RunAlone([lanes] {
                setenv("TCPX_HELLO_TIMEOUT", "1", 1);
                SetLimit();
                Rank rank;
                ListenByHand listening(&rank);
                Crowd crowd(listening.handle, "127.0.0.2");
                TCPX_REQUIRE(crowd.Fills(HelloKind::kLane, lanes) > 0);
                RequireThrough(&rank, listening, lanes, &crowd);
                TCPX_REQUIRE(LogHas("and others wait for their place"), LogText());
                crowd.Leave();
                listening.Close();
              }))
        << lanes << " lanes";
  }
}

// A peer that pauses in the middle of its connect loses the place to others that wait. It dials again, and has it next.
TEST_F(UnacceptedTest, APeerThatPausesComesAgain) {
  EXPECT_EQ("", RunAlone([] {
              setenv("TCPX_HELLO_TIMEOUT", "3", 1);
              SetLimit();
              Rank rank;
              ListenByHand listening(&rank);
              Hello hello = NumberedHello(size_t{1} << 24, HelloKind::kLane, 2);
              Visitor paused(listening.handle);
              TCPX_REQUIRE(StatusFor(&paused, HelloFor(listening.handle, hello)) == HelloStatus::kAccepted);
              Crowd crowd(listening.handle, "127.0.0.2");
              TCPX_REQUIRE(crowd.Fills(HelloKind::kLane, 2) > 0);
              const Deadline deadline(30);
              while (!paused.Ended()) {
                TCPX_REQUIRE(deadline.Yield(), LogText());
                (void)crowd.Comes(HelloKind::kLane, 2);
              }
              Crowd peer(listening.handle);
              hello.attempt = 1;
              while (!peer.Says(hello)) {
                TCPX_REQUIRE(deadline.Yield(), LogText());
                (void)crowd.Comes(HelloKind::kLane, 2);
              }
              hello.lane = 1;
              TCPX_REQUIRE(peer.Says(hello));
              peer.FirstSays(Established());
              rank.CloseReceive(listening.AcceptWithin());
              crowd.Leave();
              listening.Close();
            }));
}

// All of them are looked at when their health socket comes. Those of another one have room.
TEST_F(UnacceptedTest, ConnectionsThatShareAHealthSocket) {
  constexpr size_t kMost = 1024;
  rlimit limit{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
  constexpr rlim_t kWanted = 16 * kMost;
  if (limit.rlim_max < kWanted) GTEST_SKIP() << "the limit of open files is lower than " << kWanted;
  EXPECT_EQ("", RunAlone([] {
              SetLimit(kWanted);
              Rank rank;
              ListenByHand listening(&rank);
              Crowd crowd(listening.handle);
              const auto comes = [&crowd](size_t number, uint8_t tag) {
                Hello hello = NumberedHello(number, HelloKind::kLane, 2);
                std::fill(hello.connection_id.begin(), hello.connection_id.begin() + 8, tag);
                return crowd.Says(hello);
              };
              size_t came = 0;
              while (came <= kMost && comes(came, 1)) ++came;
              TCPX_REQUIRE(came == kMost, came);
              TCPX_REQUIRE(comes(came, 2), "another tag");
              RequirePeersAndTheEnd(&rank, &listening, &crowd);
            }));
}

TEST_F(UnacceptedTest, TheLogHasALineASecondOfThoseThatLackLanes) {
  EXPECT_EQ("", RunAlone([] {
              setenv("TCPX_HELLO_TIMEOUT", "1", 1);
              setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
              constexpr size_t kCame = 20;
              Rank rank;
              ListenByHand listening(&rank);
              Crowd crowd(listening.handle);
              const absl::Time began = absl::Now();
              for (size_t i = 0; i < kCame; ++i) TCPX_REQUIRE(crowd.Comes(HelloKind::kLane, 2));
              TCPX_REQUIRE(listening.SettlesAtMore(kCame), "the sockets of the crowd are left");
              const int lines = CountInLog("1 of 2 lanes from");
              TCPX_REQUIRE(lines >= 1 && lines <= (absl::Now() - began) / absl::Seconds(1) + 2, lines);
              crowd.Leave();
              listening.Close();
            }));
}

}  // namespace
}  // namespace tcpx
