// Connecting, in every mode: from several threads at once, many times to one listen comm, and between ranks of one
// process.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"

namespace tcpx {
namespace {

using HandleBytes = std::array<char, NCCL_NET_HANDLE_MAXSIZE>;

TEST_P(RulesTest, FourThreadsConnectAtTheSameTime) {
  constexpr int kThreads = 4;
  std::vector<absl::Status> results(kThreads);
  std::vector<std::thread> threads;
  const TrafficPlan plan(TestSeed(), 60);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, &plan, &result = results[static_cast<size_t>(i)]] {
      for (int round = 0; round < 3 && result.ok(); ++round) {
        auto pair = plugin_->Connect();
        result = pair.ok() ? RunTraffic(&net(), *pair, plan) : pair.status();
        if (pair.ok()) result.Update(plugin_->Close(*pair));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
}

TEST_P(RulesTest, OneListenCommIsAcceptedFromTenTimes) {
  constexpr int kConnections = 10;
  HandleBytes handle{};
  auto listen = plugin_->Listen(handle.data());
  ASSERT_TRUE(listen.ok()) << listen.status();
  // All connects are under way together, each with its own copy of the handle, as each peer has one.
  std::vector<HandleBytes> handles(kConnections, handle);
  std::vector<void*> sends(kConnections), receives;
  int connected = 0;
  Deadline deadline;
  while (connected < kConnections || receives.size() < kConnections) {
    for (int i = 0; i < kConnections; ++i) {
      if (sends[i] != nullptr) continue;
      ASSERT_EQ(ncclSuccess, net().Connect(plugin_->context(), 0, handles[i].data(), &sends[i])) << LogText();
      if (sends[i] != nullptr) ++connected;
    }
    void* receive = nullptr;
    ASSERT_EQ(ncclSuccess, net().Accept(*listen, &receive)) << LogText();
    if (receive != nullptr) receives.push_back(receive);
    ASSERT_TRUE(deadline.Yield()) << connected << " connected, " << receives.size() << " accepted";
  }
  // What arrives shows which receive comm belongs to which send comm: each exactly once.
  std::vector<int> names(kConnections), seen(kConnections), arrived(kConnections);
  std::vector<void*> requests;
  for (int i = 0; i < kConnections; ++i) {
    names[i] = i;
    auto receive = PostReceive(&net(), receives[i], &arrived[i], sizeof(int));
    ASSERT_TRUE(receive.ok()) << receive.status();
    requests.push_back(*receive);
    auto send = PostSend(&net(), sends[i], &names[i], sizeof(int));
    ASSERT_TRUE(send.ok()) << send.status();
    ASSERT_TRUE(WaitFor(&net(), *send).ok());
  }
  for (int i = 0; i < kConnections; ++i) {
    ASSERT_TRUE(WaitFor(&net(), requests[i]).ok());
    ASSERT_TRUE(arrived[i] >= 0 && arrived[i] < kConnections);
    EXPECT_EQ(1, ++seen[arrived[i]]);
  }
  EXPECT_TRUE(plugin_->CloseListen(*listen).ok());
  for (int i = 0; i < kConnections; ++i) EXPECT_TRUE(plugin_->Close({sends[i], receives[i]}).ok());
}

// The listen comm may be closed as soon as accept has given the comm.
TEST_P(RulesTest, ClosingTheListenCommDisturbsNoConnection) {
  HandleBytes handle{};
  auto listen = plugin_->Listen(handle.data());
  ASSERT_TRUE(listen.ok()) << listen.status();
  auto first = plugin_->ConnectTo(*listen, handle.data());
  auto second = plugin_->ConnectTo(*listen, handle.data());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  ASSERT_TRUE(plugin_->CloseListen(*listen).ok());
  const TrafficPlan plan(TestSeed(), 100);
  for (const Ends& pair : {*first, *second}) {
    const absl::Status status = RunTraffic(&net(), pair, plan);
    EXPECT_TRUE(status.ok()) << status;
  }
}

// Moves one plan over each of `pairs`, all at the same time, on one thread.
absl::Status RunTogether(NetClient* net, const std::vector<Ends>& pairs, const TrafficPlan& plan) {
  struct Flow {
    Flow(NetClient* client, const Ends& pair, const TrafficPlan* shared)
        : sender(client, pair.send, shared, &counters), receiver(client, pair.receive, shared, &counters) {}
    TrafficCounters counters;
    TrafficSender sender;
    TrafficReceiver receiver;
  };
  std::vector<std::unique_ptr<Flow>> all;
  for (const Ends& pair : pairs) all.push_back(std::make_unique<Flow>(net, pair, &plan));
  Deadline deadline;
  for (size_t finished = 0; finished < 2 * all.size();) {
    finished = 0;
    bool progress = false;
    for (auto& ends : all) {
      StepResult sent = StepResult::kNothing, received = StepResult::kNothing;
      absl::Status status = ends->sender.Step(&sent);
      status.Update(ends->receiver.Step(&received));
      if (!status.ok()) return status;
      finished += (sent == StepResult::kFinished ? 1u : 0u) + (received == StepResult::kFinished ? 1u : 0u);
      progress |= sent == StepResult::kProgress || received == StepResult::kProgress;
    }
    if (progress) deadline.Restart();
    if (!progress && !deadline.Yield()) return absl::DeadlineExceededError("no progress in time");
  }
  return absl::OkStatus();
}

// Two ranks of one process, each with its own context: pairs in both directions, all busy at once.
TEST_P(RulesTest, TwoRanksOfOneProcessTalkInBothDirections) {
  constexpr int kPairsEachWay = 3;
  void* const other = *plugin_->NewContext();
  std::vector<Ends> pairs;
  for (int i = 0; i < 2 * kPairsEachWay; ++i) {
    void* listener_context = i % 2 == 0 ? other : plugin_->context();
    void* dialler_context = i % 2 == 0 ? plugin_->context() : other;
    auto pair = plugin_->Connect(dialler_context, listener_context);
    ASSERT_TRUE(pair.ok()) << pair.status();
    pairs.push_back(*pair);
  }
  const TrafficPlan plan(TestSeed(), 100);
  const absl::Status status = RunTogether(&net(), pairs, plan);
  EXPECT_TRUE(status.ok()) << status;
  for (const Ends& pair : pairs) EXPECT_TRUE(plugin_->Close(pair).ok());
  EXPECT_EQ(ncclSuccess, net().Finalize(other));
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RulesTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
