// What the tables do with properties, virtual devices, connections and memory.
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nccl/shims.h"
#include "tests/unit/nccl/every_table.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {
namespace {

constexpr size_t kTebibyte = size_t{1} << 40;

DeviceProperties SomeProperties() {
  DeviceProperties properties;
  properties.name = "eth0";
  properties.pci_path = "/sys/devices/pci0000:00/0000:00:03.0";
  properties.guid = 0x1122334455667788;
  properties.pointer_support = NCCL_PTR_HOST | NCCL_PTR_CUDA;
  properties.speed_mbps = 100000;
  properties.port = 2;
  properties.latency_us = 17.5f;
  properties.max_comms = 65536;
  properties.max_receives = 4;
  properties.max_p2p_bytes = kTebibyte;
  properties.max_collective_bytes = size_t{1} << 29;
  properties.children = {3};
  return properties;
}

// Calls getProperties on a struct full of `byte` and returns what is there afterwards.
template <class Props>
std::vector<char> PropertiesOver(char byte, ncclResult_t (*get)(int, Props*), ncclResult_t want) {
  std::vector<char> memory(sizeof(Props), byte);
  Props props;
  std::memcpy(&props, memory.data(), sizeof(props));
  EXPECT_EQ(get(3, &props), want);
  std::memcpy(memory.data(), &props, sizeof(props));
  return memory;
}

TEST(ShimsDevices, Gotcha02_EveryByteOfThePropertiesIsWritten) {
  ForEachTable([](const auto& table) {
    Fake().properties = SomeProperties();
    EXPECT_EQ(PropertiesOver('\x5a', table.getProperties, ncclSuccess),
              PropertiesOver('\xa5', table.getProperties, ncclSuccess));
    Fake().status = absl::FailedPreconditionError("no such device");
    EXPECT_EQ(PropertiesOver('\x5a', table.getProperties, ncclInvalidArgument),
              PropertiesOver('\xa5', table.getProperties, ncclInvalidArgument));
    EXPECT_EQ(table.getProperties(0, nullptr), ncclInvalidArgument);
  });
}

TEST(ShimsDevices, Gotcha22_EachVersionHasItsOwnProperties) {
  ForEachClient([](NetClient& net) {
    Fake().properties = SomeProperties();
    ncclNetProperties_v12_t got;
    ASSERT_EQ(net.GetProperties(3, &got), ncclSuccess);
    EXPECT_STREQ(got.name, "eth0");
    EXPECT_STREQ(got.pciPath, "/sys/devices/pci0000:00/0000:00:03.0");
    EXPECT_EQ(got.guid, 0x1122334455667788u);
    EXPECT_EQ(got.ptrSupport, NCCL_PTR_HOST | NCCL_PTR_CUDA);
    EXPECT_EQ(got.regIsGlobal, 0);
    EXPECT_EQ(got.forceFlush, 0);
    EXPECT_EQ(got.speed, 100000);
    EXPECT_EQ(got.port, 2);
    EXPECT_EQ(got.latency, 17.5f);
    EXPECT_EQ(got.maxComms, 65536);
    EXPECT_EQ(got.maxRecvs, 4);
    EXPECT_EQ(got.netDeviceType, NCCL_NET_DEVICE_HOST);
    EXPECT_EQ(got.netDeviceVersion, NCCL_NET_DEVICE_INVALID_VERSION);
    EXPECT_EQ(got.vProps.ndevs, 1);
    EXPECT_EQ(got.vProps.devs[0], 3);
    EXPECT_EQ(got.maxP2pBytes, net.version() >= 9 ? kTebibyte : kTebibyte >> 10);
    EXPECT_EQ(got.maxCollBytes, size_t{1} << 29);
    EXPECT_EQ(got.maxMultiRequestSize, 1);
    EXPECT_EQ(got.railId, NCCL_NET_ID_UNDEF);
    EXPECT_EQ(got.planeId, NCCL_NET_ID_UNDEF);
  });
}

TEST(ShimsDevices, Gotcha20_LimitsAndChildrenAreAlwaysInRange) {
  ForEachTable([](const auto& table) {
    if constexpr (kVersionOf<decltype(table)> >= 9) {
      TableClient<std::decay_t<decltype(table)>> net(&table);
      for (const size_t limit : {size_t{0}, kTebibyte + 1, SIZE_MAX}) {
        Fake().properties.max_p2p_bytes = Fake().properties.max_collective_bytes = limit;
        ncclNetProperties_v12_t got;
        ASSERT_EQ(net.GetProperties(2, &got), ncclSuccess);
        EXPECT_EQ(got.maxP2pBytes, kTebibyte);
        EXPECT_EQ(got.maxCollBytes, kTebibyte);
        EXPECT_EQ(got.vProps.ndevs, 1);
        EXPECT_EQ(got.vProps.devs[0], 2);
      }
    }
  });
}

TEST(ShimsDevices, ChildrenBeyondTheVersionsRoomAreLeftOut) {
  ForEachClient([](NetClient& net) {
    if (net.version() < 9) return;
    Fake().properties.children = {10, 11, 12, 13, 14, 15, 16, 17};
    ncclNetProperties_v12_t got;
    ASSERT_EQ(net.GetProperties(2, &got), ncclSuccess);
    ASSERT_EQ(got.vProps.ndevs, net.version() >= 12 ? 8 : 4);
    for (int i = 0; i < got.vProps.ndevs; ++i) EXPECT_EQ(got.vProps.devs[i], 10 + i);
  });
}

template <class VProps>
void ExpectVirtualDevices(ncclResult_t (*make)(int*, VProps*), int most) {
  VProps props = {};
  props.ndevs = most;
  for (int i = 0; i < most; ++i) props.devs[i] = 20 + i;
  Fake().device_count = 9;
  int index = -1;
  EXPECT_EQ(make(&index, &props), ncclSuccess);
  EXPECT_EQ(index, 9);
  EXPECT_EQ(Fake().children, std::vector<int>(props.devs, props.devs + most));
  for (const int bad : {-1, 0, most + 1}) {
    props.ndevs = bad;
    EXPECT_EQ(make(&index, &props), ncclInvalidArgument);
  }
  EXPECT_EQ(make(nullptr, &props), ncclInvalidArgument);
  EXPECT_EQ(make(&index, nullptr), ncclInvalidArgument);
}

TEST(ShimsDevices, Gotcha19_MakeVDeviceIsOfferedFromV11Only) {
  ForEachTable([](const auto& table) {
    constexpr int kVersion = kVersionOf<decltype(table)>;
    if constexpr (kVersion == 9 || kVersion == 10) {
      EXPECT_EQ(table.makeVDevice, nullptr);
    }
    if constexpr (kVersion >= 11) ExpectVirtualDevices(table.makeVDevice, kVersion >= 12 ? 8 : 4);
  });
}

template <class Table>
ncclResult_t ConnectInto(const Table& table, void* ctx, void** comm, ncclNetDeviceHandle_v7_t** slot) {
  constexpr int kVersion = kNetVersion<Table>;
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  if constexpr (kVersion >= 11) {
    return table.connect(ctx, 0, handle, comm, slot);
  } else if constexpr (kVersion == 10) {
    return table.connect(0, nullptr, handle, comm, slot);
  } else {
    return table.connect(0, handle, comm, slot);
  }
}

TEST(ShimsDevices, Gotcha05_DeviceHandlesStayUntouched) {
  ForEachTable([](const auto& table) {
    EXPECT_EQ(table.regMrDmaBuf, nullptr);
    if constexpr (kVersionOf<decltype(table)> >= 7) {
      EXPECT_EQ(table.getDeviceMr, nullptr);
      EXPECT_EQ(table.irecvConsumed, nullptr);
      TableClient<std::decay_t<decltype(table)>> net(&table);
      void* ctx = InitPlain(net);
      void* comm = nullptr;
      auto* device_comm = static_cast<ncclNetDeviceHandle_v7_t*>(Stale());
      ncclNetDeviceHandle_v7_t** const slots[] = {nullptr, &device_comm};
      for (ncclNetDeviceHandle_v7_t** slot : slots) {
        EXPECT_EQ(ConnectInto(table, ctx, &comm, slot), ncclSuccess);
        EXPECT_EQ(comm, &Fake().send_comm);
        EXPECT_EQ(table.accept(&Fake().listen_comm, &comm, slot), ncclSuccess);
        EXPECT_EQ(comm, &Fake().receive_comm);
        EXPECT_EQ(device_comm, Stale());
      }
    }
  });
}

TEST(ShimsDevices, ListenAndConnectReachTheContextOfTheirInit) {
  ForEachClient([](NetClient& net) {
    void* ctx = InitPlain(net);
    Context* want = Fake().contexts[0].get();
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* comm = nullptr;
    EXPECT_EQ(net.Listen(ctx, 4, handle, &comm), ncclSuccess);
    EXPECT_EQ(comm, &Fake().listen_comm);
    EXPECT_EQ(Fake().context, want);
    EXPECT_EQ(Fake().device, 4);
    Fake().context = nullptr;
    EXPECT_EQ(net.Connect(ctx, 5, handle, &comm), ncclSuccess);
    EXPECT_EQ(Fake().context, want);
    EXPECT_EQ(Fake().device, 5);
    EXPECT_EQ(Fake().handle, handle);
  });
}

TEST(ShimsDevices, Gotcha06_NotYetIsSuccessWithoutAComm) {
  ForEachClient([](NetClient& net) {
    void* ctx = InitPlain(net);
    Fake().ready = false;
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* comm = Stale();
    EXPECT_EQ(net.Connect(ctx, 0, handle, &comm), ncclSuccess);
    EXPECT_EQ(comm, nullptr);
    comm = Stale();
    EXPECT_EQ(net.Accept(&Fake().listen_comm, &comm), ncclSuccess);
    EXPECT_EQ(comm, nullptr);
  });
}

TEST(ShimsDevices, ErrorsAndMissingArgumentsLeaveNullObjects) {
  ForEachClient([](NetClient& net) {
    void* ctx = InitPlain(net);
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    for (const bool fails : {true, false}) {
      Fake().status = fails ? absl::UnavailableError("peer") : absl::OkStatus();
      const ncclResult_t want = fails ? ncclRemoteError : ncclInvalidArgument;
      void* given = fails ? handle : nullptr;  // Without an error of the plugin the argument is what is wrong.
      void* comm = Stale();
      EXPECT_EQ(net.Listen(ctx, 0, given, &comm), want);
      EXPECT_EQ(comm, nullptr);
      comm = Stale();
      EXPECT_EQ(net.Connect(ctx, 0, given, &comm), want);
      EXPECT_EQ(comm, nullptr);
      comm = Stale();
      EXPECT_EQ(net.Accept(fails ? &Fake().listen_comm : nullptr, &comm), want);
      EXPECT_EQ(comm, nullptr);
      comm = Stale();
      EXPECT_EQ(net.RegMr(fails ? &Fake().send_comm : nullptr, handle, 8, NCCL_PTR_HOST, &comm), want);
      EXPECT_EQ(comm, nullptr);
    }
    EXPECT_EQ(net.Listen(ctx, 0, handle, nullptr), ncclInvalidArgument);
    EXPECT_EQ(net.Connect(ctx, 0, handle, nullptr), ncclInvalidArgument);
    EXPECT_EQ(net.Accept(&Fake().listen_comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(net.RegMr(&Fake().send_comm, handle, 8, NCCL_PTR_HOST, nullptr), ncclInvalidArgument);
  });
}

TEST(ShimsDevices, NullContextIsRefusedFromV11) {
  ForEachClient([](NetClient& net) {
    if (net.version() < 11) return;
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* comm = Stale();
    EXPECT_EQ(net.Init(nullptr, 1, -1, nullptr, nullptr), ncclInvalidArgument);
    EXPECT_EQ(net.Listen(nullptr, 0, handle, &comm), ncclInvalidArgument);
    EXPECT_EQ(net.Connect(nullptr, 0, handle, &comm), ncclInvalidArgument);
    EXPECT_EQ(comm, nullptr);
  });
}

TEST(ShimsDevices, RegMrPassesMemoryAndKind) {
  ForEachClient([](NetClient& net) {
    char memory[64];
    for (const int type : {NCCL_PTR_HOST, NCCL_PTR_CUDA, NCCL_PTR_DMABUF}) {
      void* mhandle = nullptr;
      EXPECT_EQ(net.RegMr(&Fake().send_comm, memory, sizeof(memory), type, &mhandle), ncclSuccess);
      EXPECT_EQ(mhandle, &Fake().region);
      EXPECT_EQ(Fake().data, memory);
      EXPECT_EQ(Fake().bytes, sizeof(memory));
      EXPECT_EQ(static_cast<int>(Fake().memory_type), type);
    }
    for (const int type : {-1, 0, 3, 8}) {
      void* mhandle = Stale();
      EXPECT_EQ(net.RegMr(&Fake().send_comm, memory, sizeof(memory), type, &mhandle), ncclInvalidArgument);
      EXPECT_EQ(mhandle, nullptr);
    }
  });
}

TEST(ShimsDevices, Gotcha08_DeregMrAndClosesAlwaysSucceed) {
  ForEachClient([](NetClient& net) {
    FakePlugin& fake = Fake();
    fake.status = absl::InternalError("everything fails");
    EXPECT_EQ(net.DeregMr(&fake.send_comm, &fake.region), ncclSuccess);
    EXPECT_EQ(net.CloseSend(&fake.send_comm), ncclSuccess);
    EXPECT_EQ(net.CloseRecv(&fake.receive_comm), ncclSuccess);
    EXPECT_EQ(net.CloseListen(&fake.listen_comm), ncclSuccess);
    const std::vector<const void*> want = {&fake.region, &fake.send_comm, &fake.receive_comm, &fake.listen_comm};
    EXPECT_EQ(fake.closed, want);
    EXPECT_EQ(net.DeregMr(&fake.send_comm, nullptr), ncclSuccess);
    EXPECT_EQ(net.DeregMr(nullptr, nullptr), ncclSuccess);
    EXPECT_EQ(net.CloseSend(nullptr), ncclSuccess);
    EXPECT_EQ(net.CloseRecv(nullptr), ncclSuccess);
    EXPECT_EQ(net.CloseListen(nullptr), ncclSuccess);
    EXPECT_EQ(fake.closed, want);
  });
}

}  // namespace
}  // namespace tcpx
