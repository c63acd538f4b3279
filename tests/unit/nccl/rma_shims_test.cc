// What the tables of one-sided transfers do with NCCL's arguments.
#include "nccl/rma_shims.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nccl/shims.h"
#include "tests/unit/nccl/fake_plugin.h"
#include "tests/unit/nccl/fake_rma.h"

namespace tcpx {
namespace {

template <class Table>
const Table& TableOf() {
  if constexpr (std::is_same_v<Table, ncclRma_v14_t>) return ncclRmaPlugin_v14;
  if constexpr (std::is_same_v<Table, ncclRma_v15_t>) return ncclRmaPlugin_v15;
  if constexpr (std::is_same_v<Table, ncclRma_v16_t>) return ncclRmaPlugin_v16;
}

// `flags` where the version has them.
template <class Table, class... Args>
ncclResult_t Iput(void** request, uint32_t flags, Args... args) {
  if constexpr (std::is_same_v<Table, ncclRma_v14_t>) return TableOf<Table>().iput(args..., request);
  if constexpr (!std::is_same_v<Table, ncclRma_v14_t>) return TableOf<Table>().iput(args..., flags, request);
}

template <class Table, class... Args>
ncclResult_t IputSignal(void** request, Args... args) {
  if constexpr (std::is_same_v<Table, ncclRma_v14_t>) return TableOf<Table>().iputSignal(args..., request);
  if constexpr (!std::is_same_v<Table, ncclRma_v14_t>) return TableOf<Table>().iputSignal(args..., 0u, request);
}

template <class Table>
class RmaShims : public testing::Test {
 protected:
  const Table& table = TableOf<Table>();
  FakeRma& fake = NewFakeRma();
  void* request = &fake;  // Left over from an earlier use.
};
using Tables = testing::Types<ncclRma_v14_t, ncclRma_v15_t, ncclRma_v16_t>;
TYPED_TEST_SUITE(RmaShims, Tables);

void* Mhandle(uintptr_t number) { return reinterpret_cast<void*>(number); }

TYPED_TEST(RmaShims, InitFailsWhereItIsOff) {
  this->fake.offered = false;
  void* context = this;
  EXPECT_NE(this->table.init(&context, 1, nullptr), ncclSuccess);
  EXPECT_EQ(context, nullptr);
}

TYPED_TEST(RmaShims, PropertiesAreTheNetTablesButForTwo) {
  ncclNetProperties_v12_t net = {};
  ncclNetProperties_v12_t rma = {};
  ASSERT_EQ(ncclNetPlugin_v12.getProperties(0, &net), ncclSuccess);
  ASSERT_EQ(this->table.getProperties(0, &rma), ncclSuccess);
  EXPECT_EQ(rma.netDeviceType, NCCL_NET_DEVICE_GIN_PROXY);
  EXPECT_EQ(rma.maxRecvs, 1);
  rma.netDeviceType = net.netDeviceType;
  rma.maxRecvs = net.maxRecvs;
  EXPECT_EQ(std::memcmp(&rma, &net, sizeof(net)), 0);
}

TYPED_TEST(RmaShims, ConnectNeverLooksAtItsContext) {
  char handle[128] = {};
  void* handles[] = {handle, handle, handle};
  void* group = nullptr;
  EXPECT_EQ(this->table.connect(Mhandle(1), handles, 3, 2, &this->fake.listen, &group), ncclSuccess);
  EXPECT_EQ(group, &this->fake.group);
  EXPECT_EQ(this->fake.count, 3);
  EXPECT_EQ(this->fake.rank, 2u);
  EXPECT_EQ(this->table.connect(nullptr, handles, 3, 3, &this->fake.listen, &group), ncclInvalidArgument);
  EXPECT_EQ(group, nullptr);
  handles[1] = nullptr;
  EXPECT_EQ(this->table.connect(nullptr, handles, 3, 2, &this->fake.listen, &group), ncclInvalidArgument);
}

TYPED_TEST(RmaShims, PutArrivesWhole) {
  EXPECT_EQ((Iput<TypeParam>(&this->request, ncclRmaOptFlagsAggregateRequests, &this->fake.contexts, 3, uint64_t{10},
                             Mhandle(4), size_t{99}, uint64_t{20}, Mhandle(5), 6u)),
            ncclSuccess);
  EXPECT_EQ(this->request, &this->fake.request);
  const RmaOperation& put = this->fake.operation;
  EXPECT_FALSE(put.get || put.has_signal);
  EXPECT_EQ(this->fake.context_index, 3);
  EXPECT_EQ(put.local_offset, 10u);
  EXPECT_EQ(put.local, 4u);
  EXPECT_EQ(put.bytes, 99u);
  EXPECT_EQ(put.remote_offset, 20u);
  EXPECT_EQ(put.remote, 5u);
  EXPECT_EQ(put.rank, 6u);
  EXPECT_EQ(put.more_follow, !(std::is_same_v<TypeParam, ncclRma_v14_t>));
}

TYPED_TEST(RmaShims, SignalsAddOneOrTheirValue) {
  const auto signal = [this](uint32_t op, bool strong) {
    return IputSignal<TypeParam>(&this->request, &this->fake.contexts, 0, uint64_t{0}, Mhandle(0), size_t{0},
                                 uint64_t{0}, Mhandle(0), 1u, uint64_t{8}, Mhandle(9), uint64_t{50}, op, strong);
  };
  EXPECT_EQ(signal(NCCL_NET_SIGNAL_OP_INC, true), ncclSuccess);
  EXPECT_EQ(this->fake.operation.signal_add, 1u);
  EXPECT_TRUE(this->fake.operation.has_signal && this->fake.operation.strong);
  EXPECT_EQ(this->fake.operation.signal, 9u);
  EXPECT_EQ(this->fake.operation.signal_offset, 8u);
  EXPECT_EQ(signal(NCCL_NET_SIGNAL_OP_ADD, false), ncclSuccess);
  EXPECT_EQ(this->fake.operation.signal_add, 50u);
  EXPECT_FALSE(this->fake.operation.strong);
  EXPECT_EQ(signal(3, true), ncclInvalidArgument);
  EXPECT_EQ(this->request, nullptr);
}

TYPED_TEST(RmaShims, FailuresWriteTheirOutputs) {
  this->fake.status = absl::UnavailableError("gone");
  EXPECT_EQ((Iput<TypeParam>(&this->request, 0, &this->fake.contexts, 0, uint64_t{0}, Mhandle(1), size_t{1},
                             uint64_t{0}, Mhandle(1), 0u)),
            ncclRemoteError);
  EXPECT_EQ(this->request, nullptr);
  int done = 5;
  EXPECT_EQ(this->table.test(&this->fake.group, &this->fake.request, &done), ncclRemoteError);
  EXPECT_EQ(done, 0);
  void* mhandle = this;
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, this, 8, NCCL_PTR_HOST, 0, &mhandle), ncclRemoteError);
  EXPECT_EQ(mhandle, nullptr);
  EXPECT_EQ(this->table.rmaProgress(&this->fake.contexts), ncclRemoteError);
  bool failed = false;
  this->fake.failed = true;
  EXPECT_EQ(this->table.queryLastError(&this->fake.contexts, &failed), ncclSuccess);
  EXPECT_TRUE(failed);
}

TYPED_TEST(RmaShims, RegistersHostAndGpuMemoryOnly) {
  void* mhandle = nullptr;
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, this, 8, NCCL_PTR_CUDA, 3, &mhandle), ncclSuccess);
  EXPECT_EQ(mhandle, Mhandle(7));
  EXPECT_EQ(this->fake.type, MemoryType::kCuda);
  EXPECT_EQ(this->fake.use, RmaUse::kSignals);
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, this, 8, NCCL_PTR_CUDA, 1, &mhandle), ncclSuccess);
  EXPECT_EQ(this->fake.use, RmaUse::kOther);
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, this, 8, NCCL_PTR_HOST, 0, &mhandle), ncclSuccess);
  EXPECT_EQ(this->fake.use, RmaUse::kOther) << "NCCL's own inline values";
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, this, 8, NCCL_PTR_CUDA, 0, &mhandle), ncclSuccess);
  EXPECT_EQ(this->fake.use, RmaUse::kWindow);
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, this, 8, NCCL_PTR_DMABUF, 0, &mhandle), ncclInvalidArgument);
  EXPECT_EQ(this->table.regMrSym(&this->fake.group, nullptr, 8, NCCL_PTR_HOST, 0, &mhandle), ncclInvalidArgument);
  EXPECT_EQ(this->table.deregMrSym(&this->fake.group, Mhandle(7)), ncclSuccess);
  EXPECT_EQ(this->fake.deregistered, 7u);
}

}  // namespace
}  // namespace tcpx
