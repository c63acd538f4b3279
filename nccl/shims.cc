#include "nccl/shims.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "nccl/plugin_api.h"
#include "nccl/shim_common.h"

namespace tcpx::shim {
namespace {

// In the order of the tables. A table's entry takes the overload that has its version's signature; a remark says with
// which version that came.
using shim::Accept;
using shim::Connect;
using shim::Listen;
using shim::RegMr;

// v6
template <int kVersion>
ncclResult_t Init(ncclDebugLogger_t log) {
  return InitLegacy({kVersion}, log, nullptr);
}

// v10
template <int kVersion>
ncclResult_t Init(ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  return InitLegacy({kVersion}, log, profiler);
}

// The config is valid during the call only.
int TrafficClassOf(const ncclNetCommConfig_v10_t* config) {
  return config == nullptr ? NCCL_NET_TRAFFIC_CLASS_UNDEF : config->trafficClass;
}

// v11
template <int kVersion>
ncclResult_t Init(void** ctx, uint64_t comm_id, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t log,
                  ncclProfilerCallback_t profiler) {
  return InitContext(ctx, {kVersion, comm_id, TrafficClassOf(config)}, log, profiler);
}

// regIsGlobal and forceFlush stay 0.
template <int kVersion, class Props>
ncclResult_t GetProperties(int dev, Props* to) {
  if (to == nullptr) return ncclInvalidArgument;
  std::memset(to, 0, sizeof(*to));
  DeviceProperties from;
  const ncclResult_t result = ReadProperties(dev, &from);
  if (result != ncclSuccess) return result;
  to->name = const_cast<char*>(from.name);
  to->pciPath = const_cast<char*>(from.pci_path);
  to->guid = from.guid;
  to->ptrSupport = from.pointer_support;
  to->speed = from.speed_mbps;
  to->port = from.port;
  to->latency = from.latency_us;
  to->maxComms = from.max_comms;
  to->maxRecvs = from.max_receives;
  if constexpr (kVersion >= 7) {
    to->netDeviceType = NCCL_NET_DEVICE_HOST;
    to->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  }
  if constexpr (kVersion >= 9) {
    // More children than the version can name are left out.
    to->vProps.ndevs = static_cast<int>(std::min(from.children.size(), std::size(to->vProps.devs)));
    std::copy_n(from.children.begin(), to->vProps.ndevs, to->vProps.devs);
    to->maxP2pBytes = from.max_p2p_bytes;
    to->maxCollBytes = from.max_collective_bytes;
  }
  if constexpr (kVersion >= 11) to->maxMultiRequestSize = 1;
  if constexpr (kVersion >= 12) to->railId = to->planeId = NCCL_NET_ID_UNDEF;
  return ncclSuccess;
}

// v6
ncclResult_t Listen(int dev, void* handle, void** listen_comm) {
  return Listen(LegacyContext(), dev, handle, listen_comm);
}

// v6
ncclResult_t Connect(int dev, void* handle, void** send_comm) {
  return Connect(LegacyContext(), dev, handle, NCCL_NET_TRAFFIC_CLASS_UNDEF, send_comm);
}

// v7. The device handles of this and the next ones are for devices that a GPU drives; a host device must not write
// them.
ncclResult_t Connect(int dev, void* handle, void** send_comm, ncclNetDeviceHandle_v7_t** /*send_dev_comm*/) {
  return Connect(dev, handle, send_comm);
}

// v10
ncclResult_t Connect(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** send_comm,
                     ncclNetDeviceHandle_v10_t** /*send_dev_comm*/) {
  return Connect(LegacyContext(), dev, handle, TrafficClassOf(config), send_comm);
}

// v11
ncclResult_t Connect(void* ctx, int dev, void* handle, void** send_comm,
                     ncclNetDeviceHandle_v11_t** /*send_dev_comm*/) {
  return Connect(ctx, dev, handle, NCCL_NET_TRAFFIC_CLASS_UNDEF, send_comm);
}

// v7
ncclResult_t Accept(void* listen_comm, void** recv_comm, ncclNetDeviceHandle_v7_t** /*recv_dev_comm*/) {
  return Accept(listen_comm, recv_comm);
}

// v6
ncclResult_t RegMr(void* comm, void* data, int size, int type, void** mhandle) {
  return RegMr(comm, data, static_cast<size_t>(size), type, mhandle);
}

// v10
ncclResult_t Isend(void* comm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request) {
  return Send(comm, {data, size, tag, static_cast<MemoryRegion*>(mhandle), phandle}, request);
}

// v6, and v9 with size_t
template <class Size>
ncclResult_t Isend(void* comm, void* data, Size size, int tag, void* mhandle, void** request) {
  return Isend(comm, data, static_cast<size_t>(size), tag, mhandle, nullptr, request);
}

// v10
ncclResult_t Irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles,
                   void** request) {
  return Receive(comm, {n, data, sizes, tags, nullptr, phandles}, mhandles, true, request);
}

// v9
ncclResult_t Irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** request) {
  return Irecv(comm, n, data, sizes, tags, mhandles, nullptr, request);
}

// v6
ncclResult_t Irecv(void* comm, int n, void** data, int* sizes, int* tags, void** mhandles, void** request) {
  size_t wide[kReceivesMax];  // Receive refuses a larger n and a negative size.
  if (sizes != nullptr) std::copy_n(sizes, std::clamp(n, 0, kReceivesMax), wide);
  return Receive(comm, {n, data, sizes == nullptr ? nullptr : wide, tags}, mhandles, false, request);
}

template <class VProps>
ncclResult_t MakeVDevice(int* index, VProps* props) {
  if (props == nullptr) return ncclInvalidArgument;
  return MakeVirtualDevice(index, props->devs, props->ndevs, static_cast<int>(std::size(props->devs)));
}

// What NCCL announces is seldom busy: lanes and memory are shared by what really is (lane_budget.h, busy_lanes.h).
ncclResult_t SetNetAttr(void* ctx, ncclNetAttr_v11_t* attr) {
  return ctx == nullptr || attr == nullptr ? ncclInvalidArgument : ncclSuccess;
}

// Entries that nobody fills are null, as shims.h lists.
template <class Table>
constexpr Table MakeTable() {
  constexpr int kVersion = kNetVersion<Table>;
  Table table = {};
  table.name = kName;
  table.init = Init<kVersion>;
  table.devices = kVersion < 11 ? LegacyDevices : Devices;
  table.getProperties = GetProperties<kVersion>;
  table.listen = Listen;
  table.connect = Connect;
  table.accept = Accept;
  table.regMr = RegMr;
  table.deregMr = DeregMr;
  table.isend = Isend;
  table.irecv = Irecv;
  table.iflush = Flush;
  table.test = Test;
  table.closeSend = CloseComm;
  table.closeRecv = CloseComm;
  table.closeListen = CloseListen;
  if constexpr (kVersion >= 11) {
    table.makeVDevice = MakeVDevice;
    table.finalize = Finalize;
    table.setNetAttr = SetNetAttr;
  }
  return table;
}

}  // namespace
}  // namespace tcpx::shim

extern "C" {
constexpr ncclNet_v6_t ncclNetPlugin_v6 = tcpx::shim::MakeTable<ncclNet_v6_t>();
constexpr ncclNet_v7_t ncclNetPlugin_v7 = tcpx::shim::MakeTable<ncclNet_v7_t>();
constexpr ncclNet_v8_t ncclNetPlugin_v8 = tcpx::shim::MakeTable<ncclNet_v8_t>();
constexpr ncclNet_v9_t ncclNetPlugin_v9 = tcpx::shim::MakeTable<ncclNet_v9_t>();
constexpr ncclNet_v10_t ncclNetPlugin_v10 = tcpx::shim::MakeTable<ncclNet_v10_t>();
constexpr ncclNet_v11_t ncclNetPlugin_v11 = tcpx::shim::MakeTable<ncclNet_v11_t>();
constexpr ncclNet_v12_t ncclNetPlugin_v12 = tcpx::shim::MakeTable<ncclNet_v12_t>();
}  // extern "C"
