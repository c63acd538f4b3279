// What the client of one-sided transfers asks of each version of the table, and what it says of libraries without one.
#include "nccl/client/rma_client.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nccl/rma_shims.h"
#include "tests/unit/nccl/fake_rma.h"

namespace tcpx {
namespace {

std::vector<std::unique_ptr<RmaClient>> EveryVersion() {
  std::vector<std::unique_ptr<RmaClient>> all;
  all.push_back(std::make_unique<RmaClient>(ncclRmaPlugin_v14));
  all.push_back(std::make_unique<RmaClient>(ncclRmaPlugin_v15));
  all.push_back(std::make_unique<RmaClient>(ncclRmaPlugin_v16));
  return all;
}

void* Mhandle(uintptr_t number) { return reinterpret_cast<void*>(number); }

TEST(RmaClient, EachVersionIsItself) {
  int version = 14;
  for (const auto& client : EveryVersion()) {
    EXPECT_EQ(client->version(), version++);
    EXPECT_STREQ(client->name(), "tcpx");
    NewFakeRma();
    ncclRmaProperties_v16_t properties = {true};
    EXPECT_EQ(client->GetRmaProperties(Mhandle(1), &properties), ncclSuccess);
    EXPECT_FALSE(properties.flushesAllPutsOnAnySignal);
  }
}

TEST(RmaClient, OperationsReachThePluginWhole) {
  for (const auto& client : EveryVersion()) {
    FakeRma& fake = NewFakeRma();
    void* request = nullptr;
    const RmaRange range = {Mhandle(3), 7, Mhandle(5), 11, 13, 2};
    const RmaSignal signal = {Mhandle(6), 24, 40, NCCL_NET_SIGNAL_OP_ADD, false};
    const uint32_t more = ncclRmaOptFlagsAggregateRequests;
    ASSERT_EQ(client->IputSignal(&fake.contexts, 4, range, signal, more, &request), ncclSuccess);
    EXPECT_EQ(request, &fake.request);
    EXPECT_EQ(fake.context_index, 4);
    EXPECT_EQ(fake.operation.rank, 2u);
    EXPECT_EQ(fake.operation.bytes, 13u);
    EXPECT_EQ(fake.operation.local, 3u);
    EXPECT_EQ(fake.operation.local_offset, 7u);
    EXPECT_EQ(fake.operation.remote, 5u);
    EXPECT_EQ(fake.operation.remote_offset, 11u);
    EXPECT_EQ(fake.operation.signal, 6u);
    EXPECT_EQ(fake.operation.signal_offset, 24u);
    EXPECT_EQ(fake.operation.signal_add, 40u);
    EXPECT_FALSE(fake.operation.strong);
    EXPECT_EQ(fake.operation.more_follow, client->version() > 14);
    ASSERT_EQ(client->Iget(&fake.contexts, 1, range, 0, &request), ncclSuccess);
    EXPECT_TRUE(fake.operation.get);
    EXPECT_EQ(fake.operation.local, 3u);
    EXPECT_EQ(fake.operation.remote_offset, 11u);
    ASSERT_EQ(client->Iput(&fake.contexts, 1, range, 0, &request), ncclSuccess);
    EXPECT_FALSE(fake.operation.get || fake.operation.has_signal);
  }
}

TEST(RmaClient, AFunctionThatATableLacksDoesNothing) {
  ncclRma_v14_t table = ncclRmaPlugin_v14;
  table.iflush = nullptr;
  table.rmaProgress = nullptr;
  table.queryLastError = nullptr;
  RmaClient client(table);
  void* request = Mhandle(1);
  bool failed = true;
  EXPECT_EQ(client.Iflush(Mhandle(1), 0, nullptr, 0, &request), ncclSuccess);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(client.Progress(Mhandle(1)), ncclSuccess);
  EXPECT_EQ(client.QueryLastError(Mhandle(1), &failed), ncclSuccess);
  EXPECT_FALSE(failed);
}

TEST(RmaClient, OpenSaysWhatIsWrong) {
  EXPECT_EQ(RmaClient::Open("libm.so.6").status().message(), "libm.so.6: no symbol ncclRmaPlugin_v16 to _v14");
  EXPECT_EQ(RmaClient::Open("libm.so.6", 15).status().message(), "libm.so.6: no symbol ncclRmaPlugin_v15");
  EXPECT_EQ(RmaClient::Open("libm.so.6", 17).status().message(), "libm.so.6: v17 is not one of v14 to v16");
  EXPECT_TRUE(absl::IsNotFound(RmaClient::Open("no/such/library.so").status()));
}

}  // namespace
}  // namespace tcpx
